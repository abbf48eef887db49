import type { AggregateRecord } from "../../../../core/scheduling/aggregate-record.ts";
import {
  DEFAULT_SCHEDULING_SETTINGS,
  readSchedulingSettings,
} from "../../../../core/scheduling/scheduling-settings.ts";
import { zoneOfMetadata } from "../../../../core/stores/api/aggregate-store.ts";
import { SCHEDULING_SECTION } from "../../../../core/stores/api/settings-store.ts";
import type { OperatorStores } from "../../ports.ts";

/** The zones of hosts. */
export interface HostZones {
  readonly defaultZone: string;
  /** The zones by host, for hosts with a zone from their aggregates. */
  readonly byHost: ReadonlyMap<string, string>;
  /** Every name of a zone that an aggregate has, sorted. */
  readonly names: readonly string[];
  of(host: string): string;
}

/** Reads the zones from the database. Cost: two queries. */
export async function readHostZones(stores: Pick<OperatorStores, "aggregates" | "settings">): Promise<HostZones> {
  const [aggregates, stored] = await Promise.all([
    stores.aggregates.aggregates(),
    stores.settings.read(SCHEDULING_SECTION),
  ]);
  const read = readSchedulingSettings(stored.values);
  const settings = read.kind === "settings" ? read.settings : DEFAULT_SCHEDULING_SETTINGS;
  return hostZones(aggregates, settings.defaultAvailabilityZone);
}

export function hostZones(aggregates: readonly AggregateRecord[], defaultZone: string): HostZones {
  const byHost = new Map<string, string>();
  const names = new Set<string>();
  for (const { hosts, metadata } of aggregates) {
    const zone = zoneOfMetadata(metadata);
    if (zone === null) continue;
    names.add(zone);
    for (const host of hosts) byHost.set(host, zone);
  }
  return { defaultZone, byHost, names: [...names].sort(), of: (host) => byHost.get(host) ?? defaultZone };
}
