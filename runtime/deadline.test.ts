import { expect, test } from "vitest";
import { DeadlineError, withDeadline } from "./deadline.ts";
import { ManualClock } from "./manual-clock.ts";

test("passes the value on and clears its timer", async () => {
  const clock = new ManualClock();
  expect(await withDeadline(Promise.resolve(7), 100, "seven", clock)).toBe(7);
  expect(clock.pending).toBe(0);
});

test("passes the error on and clears its timer", async () => {
  const clock = new ManualClock();
  await expect(withDeadline(Promise.reject(new Error("no")), 100, "it", clock)).rejects.toThrow("no");
  expect(clock.pending).toBe(0);
});

test("gives up at the deadline, and ignores a failure after it", async () => {
  const clock = new ManualClock();
  const late = Promise.withResolvers<number>();
  const guarded = withDeadline(late.promise, 100, "the cell", clock);
  clock.advance(99);
  clock.advance(1);
  await expect(guarded).rejects.toEqual(new DeadlineError("the cell", 100));
  late.reject(new Error("too late for anyone to care"));
});

/** The deadline of a promise, in a process that stands still until well after it. */
function afterStall(promise: Promise<string>) {
  const manual = new ManualClock();
  let stoodStillMs = 0;
  const monotonic = () => manual.monotonic() + stoodStillMs;
  const clock = { now: monotonic, monotonic, setTimer: manual.setTimer.bind(manual) };
  const guarded = withDeadline(promise, 100, "the cell", clock);
  stoodStillMs = 60_000;
  manual.advance(100);
  return { guarded, manual };
}

test("after a stall of this process, an answer that waits to be read is still taken", async () => {
  const answer = Promise.withResolvers<string>();
  const { guarded, manual } = afterStall(answer.promise);
  answer.resolve("read late");
  expect(await guarded).toBe("read late");
  expect(manual.pending).toBe(0);
});

test("after a stall of this process, it gives up soon if there is no answer", async () => {
  const { guarded, manual } = afterStall(new Promise(() => {}));
  manual.advance(1_000);
  await expect(guarded).rejects.toEqual(new DeadlineError("the cell", 100));
});
