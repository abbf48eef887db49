import { askedOf } from "../../../../core/scheduling/request/asked.ts";
import { cpuPlan } from "../../../../core/scheduling/request/cpu-plan.ts";
import { requestedPages } from "../../../../core/scheduling/request/memory-pages.ts";
import { guestNodes } from "../../../../core/scheduling/request/numa-nodes.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";

interface TopologyNode {
  readonly memory_mb: number;
  readonly vcpu_set: number[];
  readonly siblings: number[][];
}

/**
 * Returns the NUMA nodes of a server's guest as its flavor and image lay them out. A guest with dedicated CPUs or a page size has one node
 * unless more were asked for, and any other guest has none. Which nodes and CPUs of the host they use is known only to the host, so
 * Nova's fields for admins (`host_node` and `cpu_pinning`) are left out.
 *
 * Source: `ServerTopologyController` and `numa_get_constraints` of Nova.
 */
export function topologyView(spec: ServerSpec): {
  readonly nodes: readonly TopologyNode[];
  readonly pagesize_kb: number | null;
} {
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
    nodes: nodes.map((node) => ({ memory_mb: node.memoryMib, vcpu_set: [...node.cpus], siblings: [] })),
    pagesize_kb: pages?.pageKib ?? null,
  };
}
