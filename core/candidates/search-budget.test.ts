import { describe, expect, test } from "vitest";
import { SearchBudget } from "./search-budget.ts";

const LIMITS = { steps: 100_000, ms: 20, stepsPerSlice: 10_000 };

describe("the budget of a decision's search", () => {
  test("closes at the end of a slice and opens again in the next one until its steps are spent", () => {
    const budget = new SearchBudget(LIMITS, () => 0);
    for (let slice = 0; slice < 10; slice += 1) {
      expect([budget.isClosed, budget.spentBy]).toEqual([false, null]);
      budget.spend(9_999);
      expect(budget.isClosed).toBe(false);
      budget.spend(1);
      expect(budget.isClosed).toBe(true);
      budget.beginSlice();
    }
    expect([budget.isClosed, budget.spentBy, budget.steps]).toEqual([true, "steps", 100_000]);
  });

  test("gives the last trees no more steps than remain", () => {
    const budget = new SearchBudget({ ...LIMITS, steps: 30_000 }, () => 0);
    expect(budget.stepsForTree).toBe(20_000);
    budget.spend(20_000);
    expect(budget.stepsForTree).toBe(10_000);
    budget.spend(25_000);
    expect([budget.stepsForTree, budget.steps]).toEqual([0, 30_000]);
  });

  test("counts the time within slices but not the time between them", () => {
    let nowMs = 0;
    const budget = new SearchBudget(LIMITS, () => nowMs);
    budget.spend(2_000);
    nowMs += 12;
    budget.spend(8_000);
    budget.endSlice();
    nowMs += 1_000;
    budget.beginSlice();
    budget.spend(2_000);
    expect(budget.spentBy).toBeNull();
    nowMs += 8;
    budget.spend(2_000);
    expect([budget.isClosed, budget.spentBy]).toEqual([true, "time"]);
  });

  test("does not read the clock for a search of few steps", () => {
    let looks = 0;
    const budget = new SearchBudget(LIMITS, () => {
      looks += 1;
      return 0;
    });
    budget.beginSlice();
    budget.spend(1_999);
    budget.endSlice();
    expect(looks).toBe(0);
  });
});
