import type { Warn } from "./host-files.ts";
import type { NumaNode } from "./numa-node.ts";

export interface NodesByMemory {
  readonly nodes: readonly NumaNode[];
  /** The ids of all nodes that are online, in the order of the kernel's distances. It includes nodes that are not in `nodes`. */
  readonly online: readonly number[];
  /** The nodes whose memory the control group of the guests does not allow. Their `memoryBytes` are 0. */
  readonly forbidden: ReadonlySet<number>;
}

/**
 * The nodes that have memory for guests, each also with the CPUs of those nodes without memory that are nearest to it, of several the one with the lowest
 * id. A guest on one node needs both, and the kernel gives processes on such CPUs the memory of that node, too. A node of unknown memory counts
 * as one with memory. So it stays as it is, and a node whose distances are unknown does, too.
 */
export function joinNearestMemory({ nodes, online, forbidden }: NodesByMemory, warn: Warn): readonly NumaNode[] {
  const withMemory = nodes.filter((node) => node.memoryBytes !== 0);
  const homes = new Map<number, readonly NumaNode[]>();
  for (const node of nodes) {
    const nearest = node.memoryBytes === 0 ? nearestOf(node, withMemory, online) : null;
    if (nearest === null) continue;
    const lacks = forbidden.has(node.id) ? "no memory that the control group allows" : "no memory";
    warn(
      `NUMA node ${node.id} has ${lacks}: ${node.cpus?.length === 0 ? "it counts as" : "its CPUs count as those of"} node ${nearest.id}, which is the nearest with memory`,
    );
    homes.set(nearest.id, [...(homes.get(nearest.id) ?? []), node]);
  }
  const joined = new Set([...homes.values()].flat());
  return nodes.filter((node) => !joined.has(node)).map((node) => withCpusOf(node, homes.get(node.id) ?? []));
}

function nearestOf(node: NumaNode, withMemory: readonly NumaNode[], online: readonly number[]): NumaNode | null {
  const { distances } = node;
  if (distances?.length !== online.length) return null;
  const distanceTo = ({ id }: NumaNode) => distances[online.indexOf(id)] ?? Number.POSITIVE_INFINITY;
  return withMemory.reduce<NumaNode | null>(
    (nearest, one) => (nearest === null || distanceTo(one) < distanceTo(nearest) ? one : nearest),
    null,
  );
}

const namesOf = ({ id, joinedNodes = [] }: NumaNode): readonly number[] => [id, ...joinedNodes];

function withCpusOf(node: NumaNode, joined: readonly NumaNode[]): NumaNode {
  if (joined.length === 0) return node;
  const all = [node, ...joined].map(({ cpus }) => cpus);
  const cpus = all.includes(null) ? null : all.flatMap((one) => one ?? []).sort((a, b) => a - b);
  return { ...node, cpus, joinedNodes: [...(node.joinedNodes ?? []), ...joined.flatMap(namesOf)] };
}
