import { satisfies } from "./extra-spec-operators.ts";
import { hostAttribute, isHostAttribute } from "./host-attributes.ts";
import type { HostFilter } from "./host-filter.ts";

const SCOPE = "capabilities:";
const MAXPHYSADDR_BITS = "hw:maxphysaddr_bits";

/**
 * Passes hosts with the capabilities that the flavor's extra specs require: `capabilities:cpu_info:arch`, and keys without a scope that are
 * named like a host attribute. host-attributes.ts lists the attributes.
 */
export const computeCapabilitiesFilter: HostFilter = {
  name: "ComputeCapabilitiesFilter",
  decidedBy: "kind",
  reads: ["flavor"],
  isForAllCells: true,
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
        if (value === undefined) return "does not report a capability that the flavor requires";
        if (!satisfies(textOf(value), requirement)) return "without a capability that the flavor requires";
      }
      return null;
    };
  },
};

interface Requirement {
  readonly path: readonly string[];
  readonly requirement: string;
}

/**
 * The path of a host attribute, or null when the key does not concern hosts. Every key of every request comes here, so it checks the key
 * before it splits it.
 */
function pathOf(key: string): readonly string[] | null {
  if (key === MAXPHYSADDR_BITS) return ["cpu_info", "maxphysaddr", "bits"];
  if (key.startsWith(SCOPE)) return key.slice(SCOPE.length).split(":");
  return !key.includes(":") && isHostAttribute(key) ? [key] : null;
}

/** Writes lists with their brackets, commas and quotes, so that `<in>` finds whole items as well as parts. */
function textOf(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
