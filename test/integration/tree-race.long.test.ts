import { expect, test } from "vitest";
import { runTreeRace } from "../rigs/run-tree-race.ts";

const RACE_MS = 60_000;

test("a minute of agents, operators and four schedulers on the same 20 hosts loses no edit, oversubscribes nothing and refuses no report", {
  timeout: RACE_MS + 120_000,
}, async () => {
  const endMs = performance.now() + RACE_MS;
  const race = await runTreeRace(() => performance.now() < endMs);
  expect(race).toMatchObject({ violations: [], lostEdits: [], refusedReports: [] });
  expect(Math.min(race.reports, race.edits, race.claims, race.audited)).toBeGreaterThan(100);
});
