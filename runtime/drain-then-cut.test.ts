import { expect, test, vi } from "vitest";
import { drainThenCut } from "./drain-then-cut.ts";
import { ManualClock } from "./manual-clock.ts";

test("a close that ends in time is not cut", async () => {
  const cut = vi.fn(async () => undefined);
  const clock = new ManualClock(0);
  await drainThenCut(Promise.resolve(), { graceMs: 100, cut, clock });
  clock.advance(1_000);
  expect(cut).not.toHaveBeenCalled();
});

test("a close that waits in vain is cut, and waited for", async () => {
  const clock = new ManualClock(0);
  const closing = Promise.withResolvers<void>();
  const order: string[] = [];
  const done = drainThenCut(closing.promise, {
    graceMs: 100,
    clock,
    cut: async () => {
      order.push("cut");
      closing.resolve();
    },
  }).then(() => order.push("done"));
  clock.advance(99);
  expect(order).toEqual([]);
  clock.advance(1);
  await done;
  expect(order).toEqual(["cut", "done"]);
});

test("rejects when either the close or the cut fails", async () => {
  const clock = new ManualClock(0);
  const cut = async () => undefined;
  await expect(drainThenCut(Promise.reject(new Error("close")), { graceMs: 1, cut, clock })).rejects.toThrow("close");
  const closing = Promise.withResolvers<void>();
  const done = drainThenCut(closing.promise, {
    graceMs: 1,
    clock,
    cut: () => {
      closing.resolve();
      return Promise.reject(new Error("cut"));
    },
  });
  clock.advance(1);
  await expect(done).rejects.toThrow("cut");
});
