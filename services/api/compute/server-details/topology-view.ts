import { askedOf } from "../../../../core/scheduling/request/asked.ts";
import { cpuPlan } from "../../../../core/scheduling/request/cpu-plan.ts";
import { requestedPages } from "../../../../core/scheduling/request/memory-pages.ts";
import { guestNodes } from "../../../../core/scheduling/request/numa-nodes.ts";
import type { HostPinning, ServerSpec } from "../../../../proto/gen/berth/shared.ts";

interface HostFields {
  readonly host_node?: number;
  /** The host's CPU of each vCPU that has one for itself. */
  readonly cpu_pinning?: Readonly<Record<string, number>>;
}

interface TopologyNode extends HostFields {
  readonly memory_mb: number;
  readonly vcpu_set: number[];
  readonly siblings: number[][];
}

interface TopologyView {
  readonly nodes: readonly TopologyNode[];
  readonly pagesize_kb: number | null;
}

/**
 * Returns the NUMA nodes of a server's guest as its flavor and image lay them out. A guest with dedicated CPUs or a page size has one node
 * unless more were asked for, and any other guest has none. Nova's fields for admins (`host_node` and `cpu_pinning`) are those of `pinning`, which
 * the host has told. Without it, or where the host does not know the node, they are left out.
 *
 * Source: `ServerTopologyController` and `numa_get_constraints` of Nova.
 */
export function topologyView(spec: ServerSpec, pinning: HostPinning | null = null): TopologyView {
  const asked = askedOf(spec);
  if (asked === null) return { nodes: [], pagesize_kb: null };
  const { vcpus, memoryMib } = asked.flavor;
  const read = guestNodes(asked);
  const laidOut = read.kind === "nodes" ? read.nodes : [];
  const plan = cpuPlan(asked);
  const pages = requestedPages(asked);
  const isOneNode = pages !== null || (plan.kind === "plan" && plan.dedicated.size > 0);
  const whole = isOneNode ? [{ cpus: Array.from({ length: vcpus }, (_, cpu) => cpu), memoryMib }] : [];
  const nodes = laidOut.length > 0 ? laidOut : whole;
  return {
    nodes: nodes.map((node, index) => {
      const vcpus = [...node.cpus];
      return {
        ...{ memory_mb: node.memoryMib, vcpu_set: vcpus, siblings: [] },
        ...(pinning !== null && hostFieldsOf(pinning, index, vcpus)),
      };
    }),
    pagesize_kb: pages?.pageKib || pinning?.pageKib || null,
  };
}

function hostFieldsOf({ nodes, cpus }: HostPinning, index: number, vcpus: readonly number[]): HostFields {
  const node = nodes[index] ?? -1;
  const own = Object.entries(cpus).filter(([vcpu]) => vcpus.includes(Number(vcpu)));
  return { ...(node >= 0 && { host_node: node }), cpu_pinning: Object.fromEntries(own) };
}
