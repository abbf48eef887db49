import type { SchedulingSettings } from "../scheduling-settings.ts";
import { lowestOf } from "./aggregate-metadata.ts";
import type { HostFilter } from "./host-filter.ts";

const REASON = "has as many I/O operations as allowed";
const KEY = "max_io_ops_per_host";

/** Passes hosts with fewer busy servers (being built, moved, snapshotted and so on) than `max_io_ops_per_host`. */
export function ioOpsFilter({ maxIoOpsPerHost }: SchedulingSettings): HostFilter {
  return {
    name: "IoOpsFilter",
    decidedBy: "kind",
    reads: [],
    isForAllCells: true,
    bind: () => (host) => (host.ioOps < maxIoOpsPerHost ? null : REASON),
  };
}

/** Like `ioOpsFilter`, but metadata of a host's aggregates may set the number, and the lowest one counts. */
export function aggregateIoOpsFilter({ maxIoOpsPerHost }: SchedulingSettings): HostFilter {
  return {
    name: "AggregateIoOpsFilter",
    decidedBy: "kind",
    reads: [],
    isForAllCells: true,
    bind: () => (host) => (host.ioOps < lowestOf(host.aggregates, KEY, maxIoOpsPerHost) ? null : REASON),
  };
}
