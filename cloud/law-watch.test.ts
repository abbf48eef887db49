import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditedCell } from "../audit/read-cloud.ts";
import { systemClock } from "../runtime/clock.ts";
import { createLogger } from "../runtime/logger.ts";
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
