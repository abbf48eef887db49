import type { HostFilter } from "./host-filter.ts";

/** Passes hosts of the requested zone, or all hosts when no zone is requested. */
export const availabilityZoneFilter: HostFilter = {
  name: "AvailabilityZoneFilter",
  decidedBy: "kind",
  reads: ["zone"],
  isForAllCells: true,
  bind({ availabilityZone }) {
    if (availabilityZone === "") return null;
    return ({ zone }) => (zone === availabilityZone ? null : "in another availability zone");
  },
};
