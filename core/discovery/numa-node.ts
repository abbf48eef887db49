/** A NUMA node that is online. Null means unknown; a node without any memory for guests has 0. */
export interface NumaNode {
  readonly id: number;
  readonly memoryBytes: number | null;
  /** CPUs that guests can use, or null when unknown. */
  readonly cpus: readonly number[] | null;
  /** Distances to the nodes in the order of their ids, or null when unknown. */
  readonly distances: readonly number[] | null;
  /** The nodes without memory, and those that name the same CPUs, whose CPUs and devices count as this node's. Left out when there are none. */
  readonly joinedNodes?: readonly number[];
  /** The memory of the joined nodes that name the same CPUs, which `memoryBytes` leaves out, or null when it is unknown. Left out when there are none. */
  readonly joinedMemoryBytes?: number | null;
}

/** The memory of a node and of those that are joined to it. */
export function wholeMemoryOf({ memoryBytes, joinedMemoryBytes = 0 }: NumaNode): number | null {
  return memoryBytes === null || joinedMemoryBytes === null ? null : memoryBytes + joinedMemoryBytes;
}
