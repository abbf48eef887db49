import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import type { CellRecord } from "../../../core/stores/api/api-store.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { SchedulerEvents } from "../events.ts";
import type { OpenedCell } from "../ports.ts";
import { DEFAULT_SCHEDULER_SETTINGS } from "../settings.ts";
import type { BuildFailureCounts } from "./build-failure-counts.ts";
import { CellKeeper } from "./cell-keeper.ts";

const recordOf = (name: string): CellRecord => ({
  name,
  databaseUrl: `postgres://${name}`,
  natsUrl: null,
  disabled: false,
});

test("a scheduler leaves a cell whose record was removed, and goes on with the others", async () => {
  const clock = new ManualClock(0);
  const closed: string[] = [];
  let records = ["c1", "c2"].map(recordOf);
  const open = async ({ name }: CellRecord) =>
    ({
      name,
      store: {},
      bus: { ensureStreams: () => Promise.reject(new Error("no bus")) },
      view: {},
      source: { onApplied: () => () => {} },
      close: async () => void closed.push(name),
    }) as unknown as OpenedCell;
  const events = new SchedulerEvents({
    ...{ logger: pino({ level: "silent" }), registry: new Registry(), clock },
    ...{ claimsInFlight: () => 0, requestsInFlight: () => 0, rankings: { size: 0, memoryBytes: 0 } },
  });
  const keeper = new CellKeeper(
    {
      ...{ store: { cells: async () => records }, given: [], open, clock, events },
      ...{ failures: {} as BuildFailureCounts, onLinked: () => {} },
    },
    { ...DEFAULT_SCHEDULER_SETTINGS, schedulerId: "s1" },
  );
  await keeper.start();
  expect(keeper.all().map(({ cell }) => cell.name)).toEqual(["c1", "c2"]);
  records = records.slice(1);
  clock.advance(DEFAULT_SCHEDULER_SETTINGS.cellRefreshMs);
  await eventually("the end of the cell", () => closed.length > 0);
  expect([keeper.all().map(({ cell }) => cell.name), closed]).toEqual([["c2"], ["c1"]]);
  await keeper.close();
  expect(closed).toEqual(["c1", "c2"]);
});
