import type { HostFilter } from "./host-filter.ts";
import { hintValues } from "./scheduler-hints.ts";

/** Passes hosts with at least one of the servers that the hint `same_host` names. */
export const sameHostFilter: HostFilter = {
  name: "SameHostFilter",
  decidedBy: "request",
  bind(spec) {
    const uuids = hintValues(spec, "same_host");
    if (uuids.length === 0) return null;
    return ({ servers }) => (uuids.some((uuid) => servers.has(uuid)) ? null : "has none of the servers of same_host");
  },
};
