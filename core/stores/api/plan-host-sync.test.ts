import { expect, test } from "vitest";
import type { AggregateRecord } from "../../scheduling/aggregate-record.ts";
import type { OperatorState } from "../cell/host-admin-store.ts";
import { effectiveRatios } from "./effective-ratios.ts";
import { type OperatorsWill, ownedUuids, planHostSync } from "./plan-host-sync.ts";

const aggregate = (id: number, hosts: readonly string[]): AggregateRecord => ({
  ...{ id, uuid: `uuid-${id}`, name: `aggregate-${id}`, metadata: {}, hosts },
  ...{ createdAtMs: 0, updatedAtMs: null },
});
const state = (host: string, rest: Partial<OperatorState> = {}): OperatorState => ({
  ...{ host, rootProvider: `root-${host}`, aggregates: [], ratios: {}, ratiosHold: true },
  ...rest,
});
const will = (rest: Partial<OperatorsWill> = {}): OperatorsWill => ({
  aggregates: [aggregate(1, ["h1", "h2"]), aggregate(2, ["h1"])],
  formerUuids: ["uuid-9"],
  ratios: { byAggregate: new Map(), byHost: new Map() },
  ...rest,
});

test("leaves a host unchanged that is as the API tier wants it", () => {
  expect(planHostSync(will(), [state("h1", { aggregates: ["uuid-1", "uuid-2"] }), state("h3")])).toEqual([]);
});

test("adds missing aggregates, and removes unwanted and deleted ones", () => {
  expect(planHostSync(will(), [state("h2", { aggregates: ["uuid-2", "uuid-9"] })])).toEqual([
    {
      host: "h2",
      mirror: { rootProvider: "root-h2", add: ["uuid-1"], remove: ["uuid-2", "uuid-9"] },
      ratios: null,
    },
  ]);
  expect(ownedUuids(will())).toEqual(["uuid-1", "uuid-2", "uuid-9"]);
});

test("a host's own ratio overrides its aggregates' ratios, of which the lowest counts", () => {
  const ratios = {
    byAggregate: new Map([
      [1, { VCPU: 8, MEMORY_MB: 1.5 }],
      [2, { VCPU: 4, DISK_GB: 2 }],
    ]),
    byHost: new Map([["h1", { DISK_GB: 3 }]]),
  };
  const { aggregates } = will();
  expect(Object.fromEntries(effectiveRatios("h1", aggregates, ratios))).toEqual({
    VCPU: { ratio: 4, source: { kind: "aggregate", name: "aggregate-2" } },
    MEMORY_MB: { ratio: 1.5, source: { kind: "aggregate", name: "aggregate-1" } },
    DISK_GB: { ratio: 3, source: { kind: "host" } },
  });
});

test("writes ratios where they differ, and where another client has overwritten them", () => {
  const aggregates: AggregateRecord[] = [];
  const ratios = { byAggregate: new Map(), byHost: new Map([["h1", { VCPU: 8 }]]) };
  const sync = (states: readonly OperatorState[]) => planHostSync(will({ aggregates, ratios }), states);
  const expected = [{ host: "h1", mirror: null, ratios: { rootProvider: "root-h1", ratios: { VCPU: 8 } } }];
  expect(sync([state("h1")])).toEqual(expected);
  expect(sync([state("h1", { ratios: { VCPU: 8 } })])).toEqual([]);
  expect(sync([state("h1", { ratios: { VCPU: 8 }, ratiosHold: false })])).toEqual(expected);
  expect(sync([state("h2", { ratios: { VCPU: 8 } })])).toEqual([
    { host: "h2", mirror: null, ratios: { rootProvider: "root-h2", ratios: {} } },
  ]);
});
