import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditedCell } from "../audit/read-cloud.ts";
import { systemClock } from "../runtime/clock.ts";
import { createLogger } from "../runtime/logger.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { nextTurn } from "../runtime/next-turn.ts";
import { freshDatabase, type TestDatabase } from "../test/rigs/databases.ts";
import { eventually } from "../test/rigs/eventually.ts";
import { LawWatch } from "./law-watch.ts";

let api: TestDatabase;
beforeAll(async () => {
  api = await freshDatabase("api");
});
afterAll(() => api?.drop());

function open(cells: readonly AuditedCell[]) {
  const seen = { readings: 0 };
  const readGuests = async () => {
    seen.readings += 1;
    return { hosts: new Map(), copies: new Map(), unread: new Map() };
  };
  const watch = new LawWatch(
    { apiUrl: api.url, cells, readGuests, pauseMs: 0, patienceMs: 60_000, conductorSettings: [] },
    { clock: systemClock, logger: createLogger({ name: "test", level: "silent" }) },
  );
  return { watch, seen };
}

test("reads when somebody asks, and the reading after its end is not shown", async () => {
  const { watch } = open([]);
  expect(watch.laws()).toBeNull();
  await eventually("a reading", () => watch.laws());
  expect(watch.laws()?.broken).toEqual([]);
  await watch.close();
  expect(watch.laws()).toBeNull();
});

test("a reading without one of the cells does not show that the laws hold", async () => {
  const { watch, seen } = open([{ name: "c1", databaseUrl: "postgres://nobody@127.0.0.1:1/none" }]);
  try {
    watch.laws();
    await eventually("a second reading", () => seen.readings >= 2);
    expect(watch.laws()).toBeNull();
  } finally {
    await watch.close();
  }
});

test("an audit that fails is not begun again by each question, but after a pause", async () => {
  const clock = new ManualClock();
  const warnings: string[] = [];
  const logger = pino({ level: "warn" }, { write: (line: string) => warnings.push(line) });
  const watch = new LawWatch(
    {
      apiUrl: "postgres://nobody@127.0.0.1:1/none",
      ...{ cells: [], pauseMs: 0, patienceMs: 60_000, conductorSettings: [] },
      readGuests: async () => ({ hosts: new Map(), copies: new Map(), unread: new Map() }),
    },
    { clock, logger },
  );
  watch.laws();
  await eventually("the failure", () => warnings.length === 1);
  for (let question = 0; question < 40; question += 1) watch.laws();
  clock.advance(9_999);
  watch.laws();
  await nextTurn();
  expect([warnings.length, clock.pending]).toEqual([1, 0]);
  clock.advance(1);
  watch.laws();
  await eventually("the second failure", () => warnings.length === 2);
  await watch.close();
});
