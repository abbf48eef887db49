/** A note that a server may have ports in Neutron. */
export interface PortNote {
  readonly serverUuid: string;
  /** The ports that users made: they leave the server in the end, and are not deleted. All other ports of the server are. */
  readonly keptPorts: readonly string[];
  /** The ports that Neutron has reported as deleted since the note was last settled. */
  readonly deletedPorts?: readonly string[];
}

/** A note that a call has opened. */
export interface OpenedNote {
  readonly serverUuid: string;
  readonly version: number;
  /** An earlier call had opened it and did not settle it, so that only a comparison with Neutron can. */
  readonly wasOpen: boolean;
}

/** A note whose server's ports must be compared with the server. */
export interface DueNote extends PortNote {
  /** The server's uuid. */
  readonly id: string;
  readonly deletedPorts: readonly string[];
  /** Raised each time the note is opened. */
  readonly version: number;
  /** How long ago a call opened the note, in milliseconds. Null if it has been settled since: then Neutron has done what calls asked for. */
  readonly calledAgoMs: number | null;
}

/**
 * Notes of the servers that may have ports in Neutron. A note is opened before a port is made, given or taken, and settled when the server's
 * record says the same as Neutron. So whatever a call that ended in the middle has left behind is found by the notes that stay open. Both
 * implementations (Postgres, in-memory) pass test/contract/port-note-store. Operating failures throw the store's error.
 */
export interface PortNoteStore {
  /** Opens notes, makes those that do not exist, and adds to their kept and deleted ports. */
  openNotes(notes: readonly PortNote[]): Promise<readonly OpenedNote[]>;
  /** Settles the notes that still have this version, and forgets their deleted ports. */
  settleNotes(notes: readonly Pick<OpenedNote, "serverUuid" | "version">[]): Promise<void>;
  /** Removes the notes that still have this version. */
  removeNotes(notes: readonly Pick<OpenedNote, "serverUuid" | "version">[]): Promise<void>;
  notes(serverUuids: readonly string[]): Promise<readonly DueNote[]>;
  /**
   * Makes the settled notes of servers due at once whose build or operation has failed. A note that a call has opened stays open for its time,
   * since the server may live and the call may be at work, but the call can no longer settle it. Repeatable.
   */
  failServers(serverUuids: readonly string[]): Promise<void>;
  /** Makes the notes of servers that are gone due at once. Repeatable. */
  endServers(serverUuids: readonly string[]): Promise<void>;
  /**
   * Does the same for those of the next `limit` servers after the server `after` that the API database shows as deleted, or as refused before they
   * had a host. Returns the last one of them, or null at the end of the list.
   */
  sweepNotes(after: string | null, limit: number): Promise<string | null>;
  /** Notes that are due, or have been open for longer than `openMs`, by server: those after the server `after`. */
  dueNotes(openMs: number, after: string | null, limit: number): Promise<readonly DueNote[]>;
}
