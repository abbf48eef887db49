import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rankHosts } from "./rank-hosts.ts";

describe("rankHosts", () => {
  it("begins a short list as a long one begins", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 50 }),
        fc.nat({ max: 60 }),
        fc.nat(),
        (values, most, seed) => {
          const weights = Float64Array.from(values);
          const all = rankHosts(weights, values.length, values.length, seed);
          expect([...all].sort((a, b) => a - b)).toEqual(values.map((_, index) => index));
          expect(all.map((at) => values[at])).toEqual([...values].sort((a, b) => b - a));
          expect(rankHosts(weights, values.length, most, seed)).toEqual(all.slice(0, most));
        },
      ),
    );
  });
});
