import type { PortRecord } from "../../tasks/port-record.ts";

/** A port that was given to a server. */
export interface PortBinding {
  readonly id: string;
  readonly atMs: number;
  /** The server had the port before, perhaps by another call that is still running. The present call must not release it. */
  readonly wasOwn: boolean;
}

/** The ports that have all of the given values. */
export interface PortQuery {
  /** Null selects the ports of all projects. */
  readonly projectId: string | null;
  readonly limit: number;
  readonly id?: string;
  readonly name?: string;
  readonly networkId?: string;
  readonly address?: string;
  readonly serverUuid?: string;
}

/** A port on a network whose addresses Berth gives out. */
export type NewPort = Omit<PortRecord, "binding" | "securityGroups"> & {
  /** The server that gets the port, or null. */
  readonly serverUuid: string | null;
};

/** The addresses of a network: `size` of them from `first` on. */
export interface AddressPool {
  readonly networkId: string;
  readonly first: string;
  readonly size: number;
}

export type AddPortsOutcome =
  | { readonly kind: "added"; readonly ports: readonly PortRecord[] }
  /** Another port of the network has this address. */
  | { readonly kind: "address-taken"; readonly address: string }
  | { readonly kind: "no-address" };

/**
 * Ports that servers may be made with. Both implementations (Postgres, in-memory) pass test/contract/port-store. Operating failures throw
 * the store's error.
 */
export interface PortStore {
  createPort(port: PortRecord): Promise<"created" | "id-taken">;
  /**
   * Adds all of these ports or none. Ports without an address get the next free addresses of the pool. A released address is put at the end
   * of the pool. No two ports of a network ever have the same address, however many calls there are at once.
   */
  addPorts(ports: readonly NewPort[], pool: AddressPool): Promise<AddPortsOutcome>;
  /** The existing ports with these ids, in any order. */
  ports(ids: readonly string[]): Promise<readonly PortRecord[]>;
  portsOfServers(serverUuids: readonly string[]): Promise<readonly PortRecord[]>;
  /** Ports, oldest first. */
  listPorts(query: PortQuery): Promise<readonly PortRecord[]>;
  /** How many ports the project has beside those that end with their server. Counts up to `countMax`. */
  countOwned(projectId: string, countMax: number): Promise<number>;
  renamePort(id: string, name: string): Promise<boolean>;
  deletePort(id: string): Promise<boolean>;
  /** Deletes a port that no server has, so that its address can be given out again. False when a server has it, or it does not exist. */
  deleteFreePort(id: string): Promise<boolean>;
  /**
   * Gives ports to a server: free ones, its own, and those of the servers in `instead`, which lose them without notice. Returns the ports
   * that the server has now. Of two concurrent calls for one port, only one gets it.
   */
  bindPorts(ids: readonly string[], serverUuid: string, instead: readonly string[]): Promise<readonly PortBinding[]>;
  /**
   * Releases the listed ports that the server has. With `boundUntilMs`, ports that were bound to it later stay, so that a newer binding
   * survives. Repeatable.
   */
  unbindPorts(ids: readonly string[], serverUuid: string, boundUntilMs?: number): Promise<void>;
  /**
   * Gives up the ports of those of these servers that the API database shows as gone or does not know: ports that were made for them are removed, and the others are
   * released. A cell tells of the ends of its servers, and may be wrong about those of other cells. Repeatable.
   */
  endServers(serverUuids: readonly string[]): Promise<void>;
  /**
   * Does the same for all servers that the API database shows as gone, and for those that it does not know although they got their port
   * longer than `unknownMs` ago: their call ended before they were accepted. Returns the number of these ports.
   */
  sweepPorts(unknownMs: number): Promise<number>;
}
