import type { AggregateRecord } from "../../scheduling/aggregate-record.ts";
import type { MirrorChange, OperatorState, RatioChange, Ratios } from "../cell/host-admin-store.ts";
import { effectiveRatios, ratiosOf } from "./effective-ratios.ts";
import type { RatioSettings } from "./ratio-store.ts";

/** The API tier's settings for all hosts. */
export interface OperatorsWill {
  readonly aggregates: readonly AggregateRecord[];
  /** UUIDs of deleted aggregates. */
  readonly formerUuids: readonly string[];
  readonly ratios: RatioSettings;
}

/** The changes in a cell that make one host match the API tier's settings. */
export interface HostSync {
  readonly host: string;
  readonly mirror: MirrorChange | null;
  readonly ratios: RatioChange | null;
}

/** UUIDs of the placement aggregates that the API tier manages. All others belong to other clients. */
export function ownedUuids(will: OperatorsWill): readonly string[] {
  return [...will.aggregates.map((aggregate) => aggregate.uuid), ...will.formerUuids];
}

/** The changes for the hosts of a cell that differ from the API tier's decisions, sorted by host name. Cost: linear. */
export function planHostSync(will: OperatorsWill, states: readonly OperatorState[]): readonly HostSync[] {
  const byHost = aggregatesByHost(will.aggregates);
  const syncs: HostSync[] = [];
  for (const state of states) {
    const aggregates = byHost.get(state.host) ?? [];
    const mirror = mirrorChange(state, new Set(aggregates.map((aggregate) => aggregate.uuid)));
    const wanted = ratiosOf(effectiveRatios(state.host, aggregates, will.ratios));
    const ratios =
      state.ratiosHold && sameRatios(wanted, state.ratios)
        ? null
        : { rootProvider: state.rootProvider, ratios: wanted };
    if (mirror !== null || ratios !== null) syncs.push({ host: state.host, mirror, ratios });
  }
  return syncs;
}

/** The aggregates of each host that is in any, sorted by id. */
export function aggregatesByHost(
  aggregates: readonly AggregateRecord[],
): ReadonlyMap<string, readonly AggregateRecord[]> {
  const byHost = new Map<string, AggregateRecord[]>();
  for (const aggregate of aggregates) {
    for (const host of aggregate.hosts) {
      const known = byHost.get(host);
      if (known === undefined) byHost.set(host, [aggregate]);
      else known.push(aggregate);
    }
  }
  return byHost;
}

function mirrorChange(state: OperatorState, wanted: ReadonlySet<string>): MirrorChange | null {
  const add = [...wanted].filter((uuid) => !state.aggregates.includes(uuid));
  const remove = state.aggregates.filter((uuid) => !wanted.has(uuid));
  return add.length + remove.length === 0 ? null : { rootProvider: state.rootProvider, add, remove };
}

function sameRatios(a: Ratios, b: Ratios): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
