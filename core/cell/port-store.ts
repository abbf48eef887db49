/** One request group of a port. */
export interface PortGroup {
  readonly id: string;
  readonly resources: Readonly<Record<string, number>>;
  readonly required: readonly string[];
}

/** A port of a network, as far as scheduling asks: what it wants of a host (Neutron's `resource_request`). */
export interface PortRecord {
  readonly id: string;
  readonly projectId: string;
  readonly networkId: string;
  readonly name: string;
  /** Empty: it wants nothing. */
  readonly groups: readonly PortGroup[];
  readonly createdAtMs: number;
  /** The server that has it, or is about to; null: none. `ageMs`: how long, by the store's own clock. */
  readonly binding: { readonly serverUuid: string; readonly atMs: number; readonly ageMs: number } | null;
}

/** A port that was given to a server. */
export interface PortBinding {
  readonly id: string;
  readonly atMs: number;
  /** The server had it before, perhaps by another call that is under way: it is not for this one to let go of. */
  readonly wasOwn: boolean;
}

export interface PortQuery {
  /** Null: of all projects. */
  readonly projectId: string | null;
  readonly limit: number;
}

/** Ports that servers may be made with. Both bodies (Postgres, in-memory) pass test/contract/port-store. Operating failures throw the store's error. */
export interface PortStore {
  createPort(port: PortRecord): Promise<"created" | "id-taken">;
  /** Those of them that there are, in any order. */
  ports(ids: readonly string[]): Promise<readonly PortRecord[]>;
  /** The oldest first. */
  listPorts(query: PortQuery): Promise<readonly PortRecord[]>;
  deletePort(id: string): Promise<boolean>;
  /**
   * Gives ports to a server: those that nobody has, that it has itself, or that one of `instead` has, which let go of them without saying
   * so. Returns those that are its own now. Of two at once one gets it.
   */
  bindPorts(ids: readonly string[], serverUuid: string, instead: readonly string[]): Promise<readonly PortBinding[]>;
  /**
   * Of those that the server has, and that were not given to it after `boundUntilMs` (by their bindings), if that is said: whoever gives
   * it one anew keeps it. Repeatable.
   */
  unbindPorts(ids: readonly string[], serverUuid: string, boundUntilMs?: number): Promise<void>;
}
