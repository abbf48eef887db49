import { describe, expect, test } from "vitest";
import { parsePlan, planNames, readPlan } from "./read-plan.ts";

const WHOLE = `
name: some-plan
about: Says what.
duration: 20s
load: { clients: 4, rate: 5, build: 1.5s }
nemesis:
  - { fault: kill, target: conductor@cell1, at: 25%, every: 2s, for: 500ms, pick: all }
  - { fault: cut, target: above -> cell1, at: 1s, way: back }
expect: { active: 1, slowest: 30s }
`;

test("reads a plan and fills in defaults", () => {
  const plan = parsePlan(WHOLE, "some.yaml");
  expect(plan).toMatchObject({
    name: "some-plan",
    durationMs: 20_000,
    settleMs: 90_000,
    cloud: { cells: 2, schedulers: 2, standbys: false },
    load: { clients: 4, rate: 5, creates: null, next: "ended", buildMs: 1_500 },
    expect: { active: 1, slowestMs: 30_000, errors: null },
  });
  expect(plan.rounds).toHaveLength(1);
  expect(plan.rounds[0]?.nemesis).toMatchObject([
    {
      fault: "kill",
      target: { kind: "parts", which: "conductor@cell1" },
      at: { share: 0.25 },
      for: { ms: 500 },
      everyMs: 2_000,
      pick: "all",
    },
    {
      fault: "cut",
      target: { kind: "links", from: "above", to: "cell1" },
      for: { ms: 3_000 },
      way: "back",
      pick: "all",
    },
  ]);
});

describe("a bad plan is refused with one line that names the field", () => {
  test.each([
    ["load: { clients: 4 }", "load: { clients: 0 }", /^some\.yaml: load\.clients: /],
    ["duration: 20s", "duration: soon", /^some\.yaml: duration: /],
    ["fault: kill", "fault: frob", /^some\.yaml: nemesis\[0\]\.fault: /],
    ["at: 25%", "at: 250%", /^some\.yaml: nemesis\[0\]\.at: /],
    ["way: back", "direction: back", /^some\.yaml: nemesis\[1\]\.direction: is not known/],
    [
      "conductor@cell1",
      "above -> cell1",
      /^some\.yaml: nemesis\[0\]\.target: the target of kill must be like conductor/,
    ],
    ["above -> cell1", "cell1", /^some\.yaml: nemesis\[1\]\.target: the target of cut must be like above -> cell1/],
    ["fault: cut", "fault: slow", /^some\.yaml: nemesis\[1\]\.delay: is missing/],
    ["every: 2s, ", "until: 5s, ", /^some\.yaml: nemesis\[0\]\.until: needs every/],
    ["expect: {", "rounds: [{ name: one, nemesis: [] }]\nexpect: {", /^some\.yaml: rounds: give either/],
    ["duration: 20s", "duration: 1441m", /^some\.yaml: 1441m is not a duration/],
    ["at: 25%", "at: 1441m", /^some\.yaml: 1441m is not a duration/],
    [
      "every: 2s, ",
      "every: 1ms, ",
      /^some\.yaml: nemesis\[0\]\.every: 1 ms makes \d+ faults in 20 s, .* at most 10000/,
    ],
    ["about: Says what.", "about: [", /^some\.yaml: /],
  ])("%s → %s", (good, bad, message) => {
    const whole = WHOLE.replace("load: { clients: 4, rate: 5, build: 1.5s }", "load: { clients: 4 }");
    expect(whole).toContain(good);
    expect(() => parsePlan(whole.replace(good, bad), "some.yaml")).toThrow(message);
  });

  test("the error for a plan that does not exist lists the plans that do", () => {
    expect(() => readPlan("no-such-plan")).toThrow(/there is no plan no-such-plan.*conductor-massacre/s);
  });
});

test("every plan that ships can be read and is named like its file", () => {
  expect(planNames().length).toBeGreaterThanOrEqual(10);
  for (const name of planNames()) expect(readPlan(name).name).toBe(name);
});
