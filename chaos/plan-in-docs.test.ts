import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parsePlan, planNames, readPlan } from "./read-plan.ts";

const text = readFileSync(join(import.meta.dirname, "../docs/chaos.md"), "utf8");

test("the plan in the documentation can be carried out as written", () => {
  const [, yaml = ""] = /```yaml\n(.*?)```/s.exec(text) ?? [];
  expect(parsePlan(yaml, "docs/chaos.md")).toMatchObject({ name: "two-agents", rounds: [{ name: "" }] });
});

test("the documentation names each of the ten plans that ship, and all of them can be read", () => {
  expect(planNames().filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  expect(planNames().map((name) => readPlan(name).name)).toEqual(planNames());
  expect(planNames().length).toBeGreaterThanOrEqual(10);
});
