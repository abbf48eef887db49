import type { HostFilter } from "./host-filter.ts";
import { hintValues } from "./scheduler-hints.ts";

/** Passes hosts with none of the servers that the hint `different_host` names. */
export const differentHostFilter: HostFilter = {
  name: "DifferentHostFilter",
  decidedBy: "request",
  bind(spec) {
    const uuids = hintValues(spec, "different_host");
    if (uuids.length === 0) return null;
    return ({ servers }) => (uuids.some((uuid) => servers.has(uuid)) ? "has a server of different_host" : null);
  },
};
