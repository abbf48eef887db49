import { describe, expect, test } from "vitest";
import { requestGroup } from "../candidates/request.ts";
import { SearchBudget, type SearchLimits } from "../candidates/search-budget.ts";
import { resourceClass } from "../ledger/ids.ts";
import { HardShapes } from "./hard-shapes.ts";
import type { HostRequest } from "./host-request.ts";

const LIMITS: SearchLimits = { steps: 64_000, ms: 64, stepsPerSlice: 8_000 };
const hostRequest = (name: string, ...amounts: readonly number[]): HostRequest => ({
  groups: amounts.map((amount, index) =>
    requestGroup({ suffix: `${index}`, resources: new Map([[resourceClass(name), amount]]) }),
  ),
  groupPolicy: "none",
});
const search = (steps: number): SearchBudget => {
  const budget = new SearchBudget(LIMITS, () => 0);
  budget.spend(steps);
  return budget;
};

describe("shapes of hard queries", () => {
  test("have half the limits after each search that was given up, whatever the amounts, down to a 32nd", () => {
    const shapes = new HardShapes(LIMITS);
    expect(shapes.limitsFor(hostRequest("A", 1, 2))).toEqual(LIMITS);
    const steps = [];
    for (let round = 1; round <= 7; round += 1) {
      shapes.learn(hostRequest("A", round, 2 * round), search(64_000));
      steps.push(shapes.limitsFor(hostRequest("A", 7, 9)).steps);
    }
    expect(steps).toEqual([32_000, 16_000, 8_000, 4_000, 2_000, 2_000, 2_000]);
    expect(shapes.limitsFor(hostRequest("A", 7, 9))).toEqual({ steps: 2_000, ms: 2, stepsPerSlice: 8_000 });
  });

  test("differ by classes and by the number of groups", () => {
    const shapes = new HardShapes(LIMITS);
    shapes.learn(hostRequest("A", 1, 2), search(64_000));
    expect(
      [hostRequest("B", 1, 2), hostRequest("A", 1), hostRequest("A", 1, 2, 3)].map(
        (one) => shapes.limitsFor(one).steps,
      ),
    ).toEqual([64_000, 64_000, 64_000]);
  });

  test("regain their limits, step by step, as searches complete", () => {
    const shapes = new HardShapes(LIMITS);
    for (let round = 0; round < 2; round += 1) shapes.learn(hostRequest("A", 1), search(64_000));
    shapes.learn(hostRequest("A", 2), search(10));
    expect(shapes.limitsFor(hostRequest("A", 3)).steps).toBe(32_000);
    shapes.learn(hostRequest("A", 2), search(10));
    expect(shapes.limitsFor(hostRequest("A", 3))).toEqual(LIMITS);
  });
});
