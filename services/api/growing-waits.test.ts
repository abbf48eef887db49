import { expect, test } from "vitest";
import { GrowingWaits } from "./growing-waits.ts";

const MS_MAX = 8_000;

test("a thing waits twice as long after each failure, up to a limit, and no longer than at first when it was done or forgotten", () => {
  let nowMs = 0;
  const waits = new GrowingWaits({ monotonic: () => nowMs }, { msMax: MS_MAX });
  const waited = () => {
    const fromMs = nowMs;
    waits.wait("a", 1_000);
    while (waits.isWaiting("a")) nowMs += 500;
    return nowMs - fromMs;
  };
  expect([waited(), waited(), waited(), waited(), waited()]).toEqual([1_000, 2_000, 4_000, 8_000, 8_000]);
  nowMs += MS_MAX;
  expect(waited()).toBe(8_000);
  nowMs += MS_MAX + 1;
  expect(waited()).toBe(1_000);
  expect(waited()).toBe(2_000);
  waits.end("a");
  expect(waited()).toBe(1_000);
});

test("waits beyond a number are forgotten together, so that they take up limited memory", () => {
  const waits = new GrowingWaits({ monotonic: () => 0 }, { msMax: MS_MAX });
  for (let at = 0; at < 10_000; at += 1) waits.wait(String(at), 1_000);
  expect([waits.isWaiting("0"), waits.isWaiting("9999")]).toEqual([true, true]);
  waits.wait("0", 1_000);
  expect(waits.isWaiting("9999")).toBe(true);
  waits.wait("another", 1_000);
  expect([waits.isWaiting("another"), waits.isWaiting("0"), waits.isWaiting("9999")]).toEqual([true, false, false]);
});
