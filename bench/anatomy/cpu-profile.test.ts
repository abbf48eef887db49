import { expect, test } from "vitest";
import { type CpuProfile, foldProfile, selfTimes, selfTimesByPlace } from "./cpu-profile.ts";
import { flameGraph } from "./flame-graph.ts";

const BERTH = new URL("../../", import.meta.url).href;
const frame = (functionName: string, url: string, lineNumber: number) => ({ functionName, url, lineNumber });
/** (root) calls run, which calls query; and once (root) is idle. */
const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame("(root)", "", -1), children: [2, 4] },
    { id: 2, callFrame: frame("run", `${BERTH}services/api/run.ts`, 9), children: [3] },
    { id: 3, callFrame: frame("query", "file:///other/tree/node_modules/pg/lib/client.js", 0) },
    { id: 4, callFrame: frame("(idle)", "", -1) },
  ],
  samples: [2, 3, 3, 4],
  timeDeltas: [1_000, 2_000, 500, 7_000],
};

test("a profile folds to the milliseconds of each stack, without idle time", () => {
  expect([...foldProfile("api", profile)]).toEqual([
    ["api;run services/api/run.ts:10", 1],
    ["api;run services/api/run.ts:10;query node_modules/pg/lib/client.js:1", 2.5],
  ]);
});

test("a function's own time is summed over its stacks, and by package and folder", () => {
  const stacks = foldProfile("api", profile);
  expect(selfTimes(stacks)).toEqual([
    ["query node_modules/pg/lib/client.js:1", 2.5],
    ["run services/api/run.ts:10", 1],
  ]);
  expect(selfTimesByPlace(stacks)).toEqual([
    ["pg", 2.5],
    ["services/api", 1],
  ]);
});

test("the flame graph has a frame for each function, whose time includes the functions that it called", () => {
  const svg = flameGraph("<title>", foldProfile("api", profile), 1);
  expect(svg).toContain("&lt;title&gt;");
  expect(svg).toContain("run services/api/run.ts:10: 3.5000 ms each, 100.0 %");
  expect(svg).toContain("query node_modules/pg/lib/client.js:1: 2.5000 ms each, 71.4 %");
});
