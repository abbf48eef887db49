import { describe, expect, it } from "vitest";
import fc from "../../../test/rigs/property.ts";
import { sortByWeight } from "./sort-by-weight.ts";
import { SortedRoots } from "./sorted-roots.ts";

const inOrder = (roots: Iterable<number>, weights: Float64Array) =>
  [...roots].sort((a, b) => weights[b]! - weights[a]! || a - b);

/** Weights with few distinct values, with many, and with some squeezed together by an outlier. */
const someWeights = (length: number) =>
  fc.oneof(
    fc.array(fc.integer({ min: 0, max: 3 }), { minLength: length, maxLength: length }),
    fc.array(fc.double({ noNaN: true, min: -10, max: 10 }), { minLength: length, maxLength: length }),
    fc
      .array(fc.double({ noNaN: true, min: 0, max: 1e-12 }), { minLength: length, maxLength: length })
      .map((weights) => weights.with(0, 1e9)),
  );

describe("sortByWeight", () => {
  it("puts the highest weight first and equal ones by slot, whatever the order of its input", () => {
    const lengths = fc.constantFrom(1, 127, 128, 700);
    const cases = lengths.chain((length) => fc.tuple(someWeights(length), fc.boolean()));
    fc.assert(
      fc.property(cases, ([values, backwards]) => {
        const weights = Float64Array.from(values);
        const roots = Int32Array.from(values, (_, index) => (backwards ? values.length - 1 - index : index));
        sortByWeight(roots, weights);
        expect([...roots]).toEqual(inOrder(roots, weights));
      }),
      { numRuns: 60 },
    );
  });
});

describe("SortedRoots", () => {
  it("keeps its roots in order through any inserts, moves and removals", () => {
    const steps = fc.array(fc.tuple(fc.nat({ max: 1_499 }), fc.integer({ min: 0, max: 9 }), fc.boolean()), {
      maxLength: 1_500,
    });
    fc.assert(
      fc.property(fc.constantFrom(0, 1, 1_500), steps, (filled, taken) => {
        const weights = new Float64Array(1_500).map((_, slot) => slot % 7);
        const sorted = new SortedRoots();
        const present = new Set(Array.from({ length: filled }, (_, slot) => slot));
        sorted.fill(Int32Array.from(present), weights);
        for (const [root, weight, moves] of taken) {
          const before = weights[root]!;
          if (!moves && present.delete(root)) {
            sorted.remove(root, before);
            continue;
          }
          if (present.has(root)) sorted.move(root, before, weight);
          else sorted.insert(root, weight);
          present.add(root);
          weights[root] = weight;
        }
        const expected = inOrder(present, weights);
        expect(sorted.count).toBe(expected.length);
        expect(expected.map((_, rank) => sorted.at(rank))).toEqual(expected);
        for (const weight of [-1, 0, 3, 9, 10]) {
          expect(sorted.rankBelow(weight)).toBe(expected.filter((root) => weights[root]! >= weight).length);
        }
      }),
      { numRuns: 40 },
    );
  });
});
