import { expect, test } from "vitest";
import { BoundedCache } from "./bounded-cache.ts";
import { ManualClock } from "./manual-clock.ts";

test("keeps a value until it expires", () => {
  const clock = new ManualClock();
  const cache = new BoundedCache<number>({ clock, entriesMax: 2 });
  cache.set("a", 1, 100);
  clock.advance(99);
  expect(cache.get("a")).toBe(1);
  clock.advance(1);
  expect(cache.get("a")).toBeUndefined();
  expect(cache.size).toBe(0);
});

test("evicts the least recently used entry", () => {
  const cache = new BoundedCache<number>({ clock: new ManualClock(), entriesMax: 2 });
  cache.set("a", 1, 100);
  cache.set("b", 2, 100);
  expect(cache.get("a")).toBe(1);
  cache.set("c", 3, 100);
  expect([cache.get("a"), cache.get("b"), cache.get("c")]).toEqual([1, undefined, 3]);
});

test("replaces a value, and does not keep one that has no time to live", () => {
  const cache = new BoundedCache<number>({ clock: new ManualClock(), entriesMax: 2 });
  cache.set("a", 1, 100);
  cache.set("a", 2, 100);
  expect(cache.get("a")).toBe(2);
  cache.set("a", 3, 0);
  expect(cache.get("a")).toBeUndefined();
});
