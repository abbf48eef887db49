/** What Neutron has reported about a server's port (`network-vif-plugged`), or Cinder about its boot volume (`volume-reimaged`). */
export interface PlugEvent {
  readonly serverUuid: string;
  /** The id of the port, or of the volume. */
  readonly portId: string;
  /** Neutron could not connect the port, or Cinder could not fill the volume. */
  readonly isFailed: boolean;
}

export type PluggedPort = Omit<PlugEvent, "serverUuid">;

/**
 * The ports of servers that are being migrated live, as far as Neutron has connected them at the destination, and the boot volumes that Cinder has filled for a rebuild. Both implementations (Postgres, in-memory) pass
 * test/contract/operation-store-plugs.
 */
export interface PlugStore {
  /**
   * Called by apis. An event counts for the present destination of the server's open live migration, or for the new guest of its rebuild, and the last one about a port counts. Events about other
   * servers are left out.
   */
  notePlugged(events: readonly PlugEvent[]): Promise<void>;
  /** Called by conductors. The ports of each attempt that were reported while it was its migration's destination, sorted by their ids. */
  pluggedPorts(attemptIds: readonly string[]): Promise<readonly (readonly PluggedPort[])[]>;
}
