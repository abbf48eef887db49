import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { trait } from "../../ledger/ids.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { HostFacts } from "../host-facts.ts";
import type { HostFilter } from "./host-filter.ts";

const NUMA_ROOT = trait("HW_NUMA_ROOT");

/**
 * Passes hosts with the NUMA nodes and CPU threads that the request names, judged by the CPU topology that the agent reports. It is for
 * hosts without NUMA providers, since the search has already judged the others. Every host has at least one node.
 */
export const numaTopologyFilter: HostFilter = {
  name: "NUMATopologyFilter",
  decidedBy: "kind",
  reads: ["flavor", "image"],
  isForAllCells: true,
  bind(spec, { view }) {
    const nodes = Number(askedOf(spec, "numa_nodes") ?? 1);
    const threads = askedOf(spec, "cpu_policy") === "dedicated" && askedOf(spec, "cpu_thread_policy") === "require";
    if (nodes <= 1 && !threads) return null;
    return (host) => {
      if (hasNumaProviders(view, host.root)) return null;
      const topology = topologyOf(host);
      if (threads && topology["threads"] !== undefined && Number(topology["threads"]) < 2) return "without CPU threads";
      return nodes <= 1 || Number(topology["cells"] ?? 0) >= nodes ? null : "has too few NUMA nodes";
    };
  },
};

/** The flavor's `hw:name`, or the image's `hw_name`. */
function askedOf({ flavor, imageProperties }: ServerSpec, name: string): string | undefined {
  return flavor?.extraSpecs[`hw:${name}`] ?? imageProperties[`hw_${name}`];
}

function hasNumaProviders({ slots, traits }: LedgerView, root: number): boolean {
  const id = traits.idOf(NUMA_ROOT);
  return id >= 0 && slots.descendants(root).some((slot) => traits.has(slots.traitSet[slot]!, id));
}

function topologyOf({ hypervisor }: HostFacts): Readonly<Record<string, unknown>> {
  const topology = hypervisor.cpuInfo["topology"];
  return topology !== null && typeof topology === "object" ? { ...topology } : {};
}
