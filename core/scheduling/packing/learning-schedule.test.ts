import { expect, test } from "vitest";
import { LearningSchedule } from "./learning-schedule.ts";

test("learning is due at once, then after half as many tasks as before, and later once per memory length", () => {
  const schedule = new LearningSchedule(100);
  const due = Array.from({ length: 500 }, (_, index) => index + 1).filter((seen) => schedule.isDue(seen));
  expect(due).toEqual([1, 22, 53, 100, 170, 270, 370, 470]);
});
