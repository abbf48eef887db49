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

/** A keeper of the cells in `records`, which may be changed. */
function rig(names: readonly string[]) {
  const clock = new ManualClock(0);
  const closed: string[] = [];
  const cloud = { records: names.map(recordOf), stuck: new Set<string>() };
  const open = async ({ name }: CellRecord) =>
    ({
      name,
      store: {},
      bus: { ensureStreams: () => Promise.reject(new Error("no bus")) },
      view: {},
      source: {
        onApplied: () => () => {
          if (cloud.stuck.has(name)) throw new Error("no end");
        },
      },
      close: async () => void closed.push(name),
    }) as unknown as OpenedCell;
  const events = new SchedulerEvents({
    ...{ logger: pino({ level: "silent" }), registry: new Registry(), clock },
    ...{ claimsInFlight: () => 0, requestsInFlight: () => 0, rankings: { size: 0, memoryBytes: 0 } },
  });
  const keeper = new CellKeeper(
    {
      ...{ store: { cells: async () => cloud.records }, given: [], open, clock, events },
      ...{ failures: {} as BuildFailureCounts, onLinked: () => {} },
    },
    { ...DEFAULT_SCHEDULER_SETTINGS, schedulerId: "s1" },
  );
  const linked = () => keeper.all().map(({ cell }) => cell.name);
  return { clock, closed, cloud, keeper, linked };
}

test("a scheduler leaves a cell whose record was removed, and goes on with the others", async () => {
  const { clock, closed, cloud, keeper, linked } = rig(["c1", "c2"]);
  await keeper.start();
  expect(linked()).toEqual(["c1", "c2"]);
  cloud.records = cloud.records.slice(1);
  clock.advance(DEFAULT_SCHEDULER_SETTINGS.cellRefreshMs);
  await eventually("the end of the cell", () => closed.length > 0);
  expect([linked(), closed]).toEqual([["c2"], ["c1"]]);
  await keeper.close();
  expect(closed).toEqual(["c1", "c2"]);
});

test("a removed cell that cannot be closed in order is closed as far as possible, and the others have their turn in the same round", async () => {
  const { clock, closed, cloud, keeper, linked } = rig(["c1", "c2"]);
  await keeper.start();
  cloud.stuck.add("c1");
  cloud.records = ["c2", "c3"].map(recordOf);
  clock.advance(DEFAULT_SCHEDULER_SETTINGS.cellRefreshMs);
  await eventually("the added cell", () => linked().includes("c3"));
  expect([linked(), closed]).toEqual([["c2", "c3"], ["c1"]]);
  await keeper.close();
});
