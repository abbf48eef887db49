/** A server that a client has requested, with the runner's facts about it. Times are by the run's clock. */
export interface ChaosServer {
  /** A unique name, by which a server is found whose create was not answered. */
  readonly name: string;
  readonly client: string;
  readonly invokedMs: number;
  /** Id of its create request in the history. Null while the request is unanswered, or when it was given up. */
  requestId: number | null;
  /** Null when the UUID is not known, or there is no server. */
  uuid: string | null;
  create: "asked" | "accepted" | "refused" | "unknown";
  acceptedMs: number;
  /** `open` means that no final state has been seen yet. */
  state: "open" | "ACTIVE" | "ERROR" | "DELETED";
  /** When the server was first seen ACTIVE or in ERROR. */
  endedMs: number | null;
  /** `unknown` means that the delete got no clear answer, so the server may or may not be deleted. */
  deleting: "no" | "asked" | "accepted" | "unknown";
  deleteAcceptedMs: number;
  host: string | null;
  /** When the server began to run, as the cell says, in milliseconds since the epoch. */
  launchedAtMs: number | null;
  fault: string | null;
  /**
   * `operating` means that clients operate on it. `awaited` means that they stopped, and the server has not yet been seen without a task.
   */
  operations: "none" | "operating" | "awaited" | "ended";
  /** Whether the server was accepted, never asked to be deleted, and the API says that it does not exist. */
  lost: boolean;
}

/** Whether the run still has to wait for this server. */
export function isOpen(server: ChaosServer): boolean {
  if (server.uuid === null || server.lost || server.state === "DELETED") return false;
  return (
    server.state === "open" ||
    server.operations === "awaited" ||
    server.deleting === "asked" ||
    server.deleting === "accepted"
  );
}

export function newServer(name: string, client: string, invokedMs: number): ChaosServer {
  return {
    ...{
      name,
      client,
      invokedMs,
      requestId: null,
      uuid: null,
      create: "asked",
      acceptedMs: 0,
      state: "open",
      endedMs: null,
    },
    ...{
      deleting: "no",
      deleteAcceptedMs: 0,
      host: null,
      launchedAtMs: null,
      fault: null,
      lost: false,
      operations: "none",
    },
  };
}
