import { expect, test } from "vitest";
import { IdleLimit } from "./idle-limit.ts";
import { ManualClock } from "./manual-clock.ts";

test("a stream goes on for any time while its bytes move, and breaks off when none have moved for the limit", async () => {
  const clock = new ManualClock();
  const limit = new IdleLimit(1_000, clock);
  const received: string[] = [];
  limit.on("data", (chunk: Buffer) => received.push(chunk.toString()));
  for (const part of ["a", "b", "c"]) {
    clock.advance(999);
    await new Promise<void>((written) => limit.write(part, () => written()));
  }
  expect(received).toEqual(["a", "b", "c"]);
  const broken = new Promise<Error>((resolve) => limit.once("error", resolve));
  clock.advance(1_000);
  expect((await broken).message).toBe("nothing moved for 1000 ms");
  expect(clock.pending).toBe(0);
});

test("a stream that has ended leaves no timer", async () => {
  const clock = new ManualClock();
  const limit = new IdleLimit(1_000, clock);
  limit.resume().end("a");
  await new Promise<void>((closed) => limit.once("close", () => closed()));
  expect(clock.pending).toBe(0);
});
