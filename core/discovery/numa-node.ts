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
}
