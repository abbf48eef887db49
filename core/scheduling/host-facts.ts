import type { MembersOnHost } from "../cell/group-rule.ts";
import type { HypervisorFacts } from "../cell/hypervisor-facts.ts";

/** A host aggregate as a filter or weigher sees it. `metadata` holds `availability_zone`, if the aggregate is one. */
export interface HostAggregate {
  readonly id: number;
  readonly uuid: string;
  readonly name: string;
  readonly metadata: ReadonlyMap<string, string>;
}

/** A server that is at home on a host, or on its way there. */
export interface ServerOnHost {
  readonly uuid: string;
  readonly projectId: string;
  readonly flavorId: string;
  readonly imageRef: string;
  /** Its image's properties. */
  readonly imageProperties: Readonly<Record<string, string>>;
  /** Uuid of its server group; "": none. */
  readonly group: string;
  /** It is being built, moved, snapshotted or the like: it counts as an I/O operation (Nova's num_io_ops). */
  readonly busy: boolean;
}

/**
 * One host, beyond what the ledger view's arrays say of its providers. Read it synchronously: it follows its cell.
 * `root`: slot of the host's root provider in the cell's view.
 */
export interface HostFacts {
  readonly name: string;
  readonly cell: string;
  readonly root: number;
  /** Of the whole cloud, in the order of their ids. */
  readonly aggregates: readonly HostAggregate[];
  /** Zone of its aggregates, or the default one. */
  readonly zone: string;
  readonly servers: ReadonlyMap<string, ServerOnHost>;
  /** How many of `servers` are busy. */
  readonly ioOps: number;
  readonly hypervisor: HypervisorFacts;
}

/** The hosts of one cell. */
export interface CellFacts {
  readonly cell: string;
  /** By the slot of the host's root; undefined: no host has its root there. */
  at(root: number): HostFacts | undefined;
  /** Name of the host that has the server; undefined: none of this cell. */
  homeOf(serverUuid: string): string | undefined;
  /** How many servers of a group each host has, by its name, both ends of moves counted; hosts without any are not here. */
  membersOf(group: string): ReadonlyMap<string, MembersOnHost>;
  /** The hosts that a server is counted on for its group: its home and both ends of its move. Of a server without a group none. */
  placesOf(serverUuid: string): readonly string[];
  /** The version that the hypervisors of all hosts have; null: they differ. */
  readonly commonHypervisorVersion: number | null;
  /** Whether metadata of any aggregate has the key: if not, rules about it have nothing to say. */
  hasMetadata(key: string): boolean;
  /** Every key of any aggregate's metadata. */
  metadataKeys(): Iterable<string>;
}
