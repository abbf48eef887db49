import { satisfies } from "./extra-spec-operators.ts";
import { hostAttribute, isHostAttribute } from "./host-attributes.ts";
import type { HostFilter } from "./host-filter.ts";

const SCOPE = "capabilities:";
const MAXPHYSADDR_BITS = "hw:maxphysaddr_bits";

/**
 * Hosts with what the flavor's extra specs require of them: `capabilities:cpu_info:arch`, and keys without scope that are called
 * like an attribute of hosts. See host-attributes.ts for what there is.
 */
export const computeCapabilitiesFilter: HostFilter = {
  name: "ComputeCapabilitiesFilter",
  decidedBy: "kind",
  reads: ["flavor"],
  bind({ flavor }, { view }) {
    const required: Requirement[] = [];
    for (const key in flavor?.extraSpecs) {
      const path = pathOf(key);
      if (path === null) continue;
      const requirement = flavor.extraSpecs[key] ?? "";
      required.push({ path, requirement: key === MAXPHYSADDR_BITS ? `>= ${requirement}` : requirement });
    }
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

interface Requirement {
  readonly path: readonly string[];
  readonly requirement: string;
}

/** Null: the key asks nothing of hosts. Asked for every key of every request, so it looks before it splits. */
function pathOf(key: string): readonly string[] | null {
  if (key === MAXPHYSADDR_BITS) return ["cpu_info", "maxphysaddr", "bits"];
  if (key.startsWith(SCOPE)) return key.slice(SCOPE.length).split(":");
  return !key.includes(":") && isHostAttribute(key) ? [key] : null;
}

/** Lists with commas and quotes around, so that `<in>` finds whole items and parts alike. */
function textOf(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
