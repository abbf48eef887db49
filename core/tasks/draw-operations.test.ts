import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { operationsPage } from "./draw-operations.ts";
import { OPERATION_KINDS, OPERATIONS } from "./operation-kinds.ts";
import { abortedTo } from "./operation-stages.ts";

test("the page of operations shows the current routes; `npm run diagrams` writes it", () => {
  expect(readFileSync(new URL("../../docs/operations.md", import.meta.url), "utf8")).toBe(operationsPage());
});

test("every stage of a route can be reached, and every arrow leads to a stage of the route or to an end", () => {
  for (const kind of OPERATION_KINDS) {
    const route = OPERATIONS[kind].route;
    const targets = [...route.values()].flatMap(({ done, failed, gone, fenced }) => [done, failed, gone, fenced]);
    const aborted = [...route.keys()].map((stage) => abortedTo(kind, stage)).filter((stage) => stage !== null);
    const stages = [
      ...aborted,
      ...targets.flatMap((target) => (target === "another" ? ["preparing", "restoring"] : [target])),
    ];
    const ends = ["succeed", "succeed-keeping", "give-up", "lost"];
    expect(stages.filter((stage) => !ends.includes(stage) && !route.has(stage as never))).toEqual([]);
    const [first, ...others] = route.keys();
    expect(others.filter((stage) => stage !== first && !stages.includes(stage))).toEqual([]);
  }
});
