import type { HypervisorFacts } from "../ledger/hypervisor-facts.ts";
import type { MembersOnHost } from "../tasks/group-rule.ts";

/** A host aggregate as filters and weighers see it. `metadata` holds `availability_zone` when the aggregate is a zone. */
export interface HostAggregate {
  readonly id: number;
  readonly uuid: string;
  readonly name: string;
  readonly metadata: ReadonlyMap<string, string>;
}

/** A server whose home is this host, or that is on its way there. */
export interface ServerOnHost {
  readonly uuid: string;
  readonly projectId: string;
  readonly flavorId: string;
  readonly imageRef: string;
  /** Properties of its image. */
  readonly imageProperties: Readonly<Record<string, string>>;
  /** Uuid of its server group, or "" when it has none. */
  readonly group: string;
  /** True while it is being built, moved, snapshotted and so on: it then counts as an I/O operation (Nova's num_io_ops). */
  readonly busy: boolean;
}

/**
 * Facts about one host beyond the view's arrays of its providers. They follow the cell's changes, so read them synchronously. `root` is the
 * slot of the host's root provider in the cell's view.
 */
export interface HostFacts {
  readonly name: string;
  readonly cell: string;
  readonly root: number;
  /** The host's aggregates in the order of their ids. Aggregates belong to the whole cloud, not to a cell. */
  readonly aggregates: readonly HostAggregate[];
  /** The zone of its aggregates, or the default zone. */
  readonly zone: string;
  readonly servers: ReadonlyMap<string, ServerOnHost>;
  /** Number of `servers` that are busy. */
  readonly ioOps: number;
  readonly hypervisor: HypervisorFacts;
}

/** Facts about the hosts of one cell. */
export interface CellFacts {
  readonly cell: string;
  /** The host with its root at this slot, or undefined when there is none. */
  at(root: number): HostFacts | undefined;
  /** Name of the host that has the server, or undefined when no host of this cell has it. */
  homeOf(serverUuid: string): string | undefined;
  /** By host name: number of servers of a group, with both ends of moves counted. Hosts without any are left out. */
  membersOf(group: string): ReadonlyMap<string, MembersOnHost>;
  /** The hosts on which a server counts for its group: its home and both ends of its move. Empty for a server without a group. */
  placesOf(serverUuid: string): readonly string[];
  /** The hypervisor version that all hosts have in common, or null when they differ. */
  readonly commonHypervisorVersion: number | null;
  /** Whether the metadata of any aggregate has the key. If not, rules about the key do not apply. */
  hasMetadata(key: string): boolean;
  /** All keys in the metadata of any aggregate. */
  metadataKeys(): Iterable<string>;
}
