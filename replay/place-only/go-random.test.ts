import { describe, expect, it } from "vitest";
import { GoRandom } from "./go-random.ts";

describe("random numbers of Go's generator", () => {
  it("are the numbers that every Go program prints for seed 1", () => {
    const random = new GoRandom(1);
    expect(Array.from({ length: 10 }, () => random.below(100))).toEqual([81, 87, 47, 59, 81, 18, 25, 40, 56, 0]);
  });

  it("shuffle without losing an element, in the same way for the same seed", () => {
    const shuffled = (seed: number): number[] => {
      const items = Array.from({ length: 50 }, (_, index) => index);
      new GoRandom(seed).shuffle(items);
      return items;
    };
    expect(shuffled(42)).toEqual(shuffled(42));
    expect(shuffled(42)).not.toEqual(shuffled(43));
    expect(shuffled(42).toSorted((one, other) => one - other)).toEqual(Array.from({ length: 50 }, (_, index) => index));
  });
});
