import type { HostFilter } from "./host-filter.ts";

/** Passes every host. */
export const allHostsFilter: HostFilter = {
  name: "AllHostsFilter",
  decidedBy: "kind",
  reads: [],
  isForAllCells: true,
  bind: () => null,
};
