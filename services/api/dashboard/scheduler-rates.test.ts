import { expect, test } from "vitest";
import type { SchedulerFigures } from "../../../core/stores/scheduler-figures.ts";
import { SchedulerRates } from "./scheduler-rates.ts";

const figures = (at: number, placed: number, more: Partial<SchedulerFigures> = {}): SchedulerFigures => {
  return { ...{ at, placed, refused: 0, racesLost: 0, taken: 0, queuedMs: 0 }, ...more };
};
const NONE = { placed: null, refused: null, racesLost: null, queueAgeMs: null };

test("makes rates of the differences of figures, and knows none before the second reading", () => {
  const rates = new SchedulerRates();
  const first = new Map([["a", figures(1_000, 10)]]);
  expect(rates.take(["a", "b"], first)).toEqual([
    { id: "a", ...NONE },
    { id: "b", ...NONE },
  ]);
  expect(rates.take(["a"], first)).toEqual([{ id: "a", ...NONE }]);
  const later = figures(3_000, 40, { refused: 1, racesLost: 3, taken: 4, queuedMs: 100 });
  expect(rates.take(["a"], new Map([["a", later]]))).toEqual([
    { id: "a", placed: 15, refused: 0.5, racesLost: 1.5, queueAgeMs: 25 },
  ]);
});

test("forgets readings that are older than ten seconds, and those of a scheduler that has left", () => {
  const rates = new SchedulerRates();
  const take = (at: number, placed: number) => rates.take(["a"], new Map([["a", figures(at, placed)]]))[0]?.placed;
  take(0, 0);
  take(9_000, 900);
  expect(take(12_000, 900)).toBe(0);
  rates.take([], new Map());
  expect(take(13_000, 1_000)).toBeNull();
});
