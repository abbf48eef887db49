import { expect, test } from "vitest";
import { runTreeRace } from "../rigs/run-tree-race.ts";

/** `BERTH_TREE_RACE_SECONDS` sets how long the race lasts, so that it can be run for longer than a test should last. */
const RACE_MS = Number(process.env.BERTH_TREE_RACE_SECONDS ?? 15) * 1_000;

test("agents, operators and four schedulers that work on the same 20 hosts for long lose no edit, oversubscribe nothing and refuse no report", {
  timeout: RACE_MS + 120_000,
}, async () => {
  const endMs = performance.now() + RACE_MS;
  const race = await runTreeRace(() => performance.now() < endMs);
  expect(race).toMatchObject({ violations: [], lostEdits: [], refusedReports: [] });
  expect(Math.min(race.reports, race.edits, race.claims, race.audited)).toBeGreaterThan(100);
});
