/**
 * Names of the hosts of each cell, kept in the API database for the time when a cell does not answer. The cells hold the truth, and this
 * copy follows them. Both implementations (Postgres, in-memory) pass test/contract/host-map-store.
 */
export interface HostMapStore {
  /** Sorted host names, or an empty list for an unknown cell. */
  hostsOf(cell: string): Promise<readonly string[]>;
  /** Replaces the stored host names of the cell. */
  keepHosts(cell: string, names: readonly string[]): Promise<void>;
  /** Forgets one host. A host that is not stored for the cell is ignored. */
  forgetHost(cell: string, name: string): Promise<void>;
}
