/**
 * Names of the hosts of each cell, kept in the API database: what is known of the hosts of a cell that does not answer. The cells have the
 * truth; this copy follows it. Both bodies (Postgres, in-memory) pass test/contract/host-map-store.
 */
export interface HostMapStore {
  /** By name; empty for a cell that nobody has told of. */
  hostsOf(cell: string): Promise<readonly string[]>;
  /** Replaces what is kept of the cell. */
  keepHosts(cell: string, names: readonly string[]): Promise<void>;
}
