import type { SchedulingSettings } from "../scheduling-settings.ts";
import { lowestOf } from "./aggregate-metadata.ts";
import type { HostFilter } from "./host-filter.ts";

const REASON = "has as many servers as allowed";
const KEY = "max_instances_per_host";

/** Passes hosts with fewer servers than `max_instances_per_host`. */
export function numInstancesFilter({ maxInstancesPerHost }: SchedulingSettings): HostFilter {
  return {
    name: "NumInstancesFilter",
    decidedBy: "kind",
    reads: [],
    isForAllCells: true,
    bind: () => (host) => (host.servers.size < maxInstancesPerHost ? null : REASON),
  };
}

/** Like `numInstancesFilter`, but metadata of a host's aggregates may set the number, and the lowest one counts. */
export function aggregateNumInstancesFilter({ maxInstancesPerHost }: SchedulingSettings): HostFilter {
  return {
    name: "AggregateNumInstancesFilter",
    decidedBy: "kind",
    reads: [],
    isForAllCells: true,
    bind: () => (host) => (host.servers.size < lowestOf(host.aggregates, KEY, maxInstancesPerHost) ? null : REASON),
  };
}
