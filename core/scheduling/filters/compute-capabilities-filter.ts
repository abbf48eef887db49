import { satisfies } from "./extra-spec-operators.ts";
import { hostAttribute, isHostAttribute } from "./host-attributes.ts";
import type { HostFilter } from "./host-filter.ts";

const SCOPE = "capabilities";

/**
 * Hosts with what the flavor's extra specs require of them: `capabilities:cpu_info:arch`, and keys without scope that are called
 * like an attribute of hosts. See host-attributes.ts for what there is.
 */
export const computeCapabilitiesFilter: HostFilter = {
  name: "ComputeCapabilitiesFilter",
  decidedBy: "kind",
  reads: ["flavor"],
  bind({ flavor }, { view }) {
    const required = Object.entries(flavor?.extraSpecs ?? {}).flatMap(([key, requirement]) => {
      if (key === "hw:maxphysaddr_bits")
        return [{ path: ["cpu_info", "maxphysaddr", "bits"], requirement: `>= ${requirement}` }];
      const [scope = "", ...path] = key.split(":");
      if (path.length === 0) return isHostAttribute(scope) ? [{ path: [scope], requirement }] : [];
      return scope === SCOPE ? [{ path, requirement }] : [];
    });
    if (required.length === 0) return null;
    return (host) => {
      for (const { path, requirement } of required) {
        const value = hostAttribute(host, view, path);
        if (value === undefined) return "does not tell of a capability that the flavor asks";
        if (!satisfies(textOf(value), requirement)) return "without a capability that the flavor asks";
      }
      return null;
    };
  },
};

/** Lists with commas and quotes around, so that `<in>` finds whole items and parts alike. */
function textOf(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
