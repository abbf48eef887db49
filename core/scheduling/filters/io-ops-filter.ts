import type { SchedulingSettings } from "../scheduling-settings.ts";
import { lowestOf } from "./aggregate-metadata.ts";
import type { HostFilter } from "./host-filter.ts";

const REASON = "builds and moves as much as it may";
const KEY = "max_io_ops_per_host";

/** Hosts with fewer servers being built, moved, snapshotted and the like than `max_io_ops_per_host`. */
export function ioOpsFilter({ maxIoOpsPerHost }: SchedulingSettings): HostFilter {
  return {
    name: "IoOpsFilter",
    decidedBy: "kind",
    reads: [],
    bind: () => (host) => (host.ioOps < maxIoOpsPerHost ? null : REASON),
  };
}

/** The same, where metadata of a host's aggregates may set the number: the lowest counts. */
export function aggregateIoOpsFilter({ maxIoOpsPerHost }: SchedulingSettings): HostFilter {
  return {
    name: "AggregateIoOpsFilter",
    decidedBy: "kind",
    reads: [],
    bind: () => (host) => (host.ioOps < lowestOf(host.aggregates, KEY, maxIoOpsPerHost) ? null : REASON),
  };
}
