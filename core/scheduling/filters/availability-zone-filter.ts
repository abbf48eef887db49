import type { HostFilter } from "./host-filter.ts";

/** Hosts of the zone that was asked for, if any was. */
export const availabilityZoneFilter: HostFilter = {
  name: "AvailabilityZoneFilter",
  decidedBy: "kind",
  reads: ["zone"],
  bind({ availabilityZone }) {
    if (availabilityZone === "") return null;
    return ({ zone }) => (zone === availabilityZone ? null : "in another availability zone");
  },
};
