import { expect, test } from "vitest";
import { parsePlan } from "./read-plan.ts";
import { countOf, scheduleOf } from "./schedule.ts";

function scheduleFor(nemesis: string, durationMs: number) {
  const plan = parsePlan(`{ name: p, about: a, duration: 9s, load: { clients: 1 }, nemesis: [${nemesis}] }`, "test");
  return scheduleOf(plan.rounds[0]?.nemesis ?? [], durationMs).map(({ step, atMs, forMs }) => [
    step.fault,
    atMs,
    forMs,
  ]);
}

test("shares are of the round's duration, and times are absolute", () => {
  expect(
    scheduleFor("{ fault: kill-all, at: 50%, for: 10% }, { fault: redis-flush, at: 1s, for: 2s }", 20_000),
  ).toEqual([
    ["redis-flush", 1_000, 2_000],
    ["kill-all", 10_000, 2_000],
  ]);
});

test("a repeated fault repeats until the end of the round, or until its own end", () => {
  expect(scheduleFor("{ fault: kill, target: api, at: 1s, every: 2s }", 6_000)).toEqual([
    ["kill", 1_000, 3_000],
    ["kill", 3_000, 3_000],
    ["kill", 5_000, 3_000],
  ]);
  expect(scheduleFor("{ fault: kill, target: api, at: 1s, every: 2s, until: 50% }", 6_000)).toEqual([
    ["kill", 1_000, 3_000],
  ]);
});

test("the count is the number of faults that happen", () => {
  const text = "{ fault: kill, target: api, at: 10%, every: 0.7s, until: 95% }, { fault: kill-all, at: 50% }";
  const plan = parsePlan(`{ name: p, about: a, duration: 9s, load: { clients: 1 }, nemesis: [${text}] }`, "test");
  const steps = plan.rounds[0]?.nemesis ?? [];
  for (const durationMs of [0, 1, 700, 6_000, 9_999]) {
    const counted = steps.reduce((sum, step) => sum + countOf(step, durationMs), 0);
    expect(scheduleOf(steps, durationMs)).toHaveLength(counted);
  }
});

test("a fault that would begin at the end of the round or later does not happen", () => {
  expect(scheduleFor("{ fault: kill-all, at: 6s }, { fault: kill-all, at: 100% }", 6_000)).toEqual([]);
});
