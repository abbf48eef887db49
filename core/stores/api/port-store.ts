import type { PortRecord } from "../../tasks/port-record.ts";

/** A port that was given to a server. */
export interface PortBinding {
  readonly id: string;
  readonly atMs: number;
  /** The server had the port before, perhaps by another call that is still running. The present call must not release it. */
  readonly wasOwn: boolean;
}

export interface PortQuery {
  /** Null selects the ports of all projects. */
  readonly projectId: string | null;
  readonly limit: number;
}

/**
 * Ports that servers may be made with. Both implementations (Postgres, in-memory) pass test/contract/port-store. Operating failures throw
 * the store's error.
 */
export interface PortStore {
  createPort(port: PortRecord): Promise<"created" | "id-taken">;
  /** The existing ports with these ids, in any order. */
  ports(ids: readonly string[]): Promise<readonly PortRecord[]>;
  /** Ports, oldest first. */
  listPorts(query: PortQuery): Promise<readonly PortRecord[]>;
  deletePort(id: string): Promise<boolean>;
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
}
