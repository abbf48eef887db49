import { expect, test, vi } from "vitest";
import { ManualClock } from "./manual-clock.ts";
import { backoffMs, retry } from "./retry.ts";

const backoff = { delayMs: 100, delayMsMax: 1_000 };

test("doubles the pause up to a maximum; half of each pause is random", () => {
  const pauses = [1, 2, 3, 4, 5, 60].map((attempt) => [
    backoffMs(attempt, backoff, () => 0),
    backoffMs(attempt, backoff, () => 1),
  ]);
  expect(pauses).toEqual([
    [50, 100],
    [100, 200],
    [200, 400],
    [400, 800],
    [500, 1_000],
    [500, 1_000],
  ]);
});

test("tries until it succeeds, with a pause after each failure", async () => {
  const clock = new ManualClock();
  const result = retry(async (attempt) => (attempt < 3 ? Promise.reject(new Error("not yet")) : attempt), {
    ...backoff,
    triesMax: 5,
    random: () => 1,
    clock,
  });
  await expect.poll(() => clock.pending).toBe(1);
  clock.advance(100);
  await expect.poll(() => clock.pending).toBe(1);
  clock.advance(199);
  expect(clock.pending).toBe(1);
  clock.advance(1);
  expect(await result).toBe(3);
});

test("gives up with the last error after the last try", async () => {
  const work = vi.fn(async (attempt: number) => Promise.reject(new Error(`failure ${attempt}`)));
  await expect(retry(work, { delayMs: 0, delayMsMax: 0, triesMax: 3 })).rejects.toThrow("failure 3");
  expect(work).toHaveBeenCalledTimes(3);
});

test("does not repeat what cannot succeed", async () => {
  const work = vi.fn(async () => Promise.reject(new Error("forbidden")));
  await expect(retry(work, { ...backoff, triesMax: 3, isTransient: () => false })).rejects.toThrow("forbidden");
  expect(work).toHaveBeenCalledTimes(1);
});

test("stops waiting when told to", async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const result = retry(async () => Promise.reject(new Error("down")), {
    ...backoff,
    triesMax: 9,
    clock,
    signal: stop.signal,
  });
  await expect.poll(() => clock.pending).toBe(1);
  stop.abort();
  await expect(result).rejects.toThrow("down");
  expect(clock.pending).toBe(0);
});
