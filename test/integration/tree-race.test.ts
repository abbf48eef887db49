import { expect, test } from "vitest";
import { runTreeRace } from "../rigs/run-tree-race.ts";

test("agents, operators and four schedulers on the same 20 hosts lose no edit, oversubscribe nothing and refuse no report", {
  timeout: 60_000,
}, async () => {
  let rounds = 0;
  const race = await runTreeRace(() => ++rounds <= 600);
  expect(race).toMatchObject({ violations: [], lostEdits: [], refusedReports: [] });
  expect(Math.min(race.reports, race.edits, race.claims, race.audited)).toBeGreaterThan(20);
});
