/** A server that a client has asked for, and what is known of it. Times by the run's clock. */
export interface ChaosServer {
  /** Unlike any other's: by it a server is found whose create was not answered. */
  readonly name: string;
  readonly client: string;
  readonly invokedMs: number;
  /** Of its create, in the history; null: not answered yet, or given up. */
  requestId: number | null;
  /** Null: not known, or there is none. */
  uuid: string | null;
  create: "asked" | "accepted" | "refused" | "unknown";
  acceptedMs: number;
  /** `open`: not seen in an end yet. */
  state: "open" | "ACTIVE" | "ERROR" | "DELETED";
  /** When it was seen to be ACTIVE or in ERROR. */
  endedMs: number | null;
  /** `unknown`: it may be deleted or not, and is what it is. */
  deleting: "no" | "asked" | "accepted" | "unknown";
  deleteAcceptedMs: number;
  host: string | null;
  /** When it began to run, by the cell's word, in milliseconds since 1970. */
  launchedAtMs: number | null;
  fault: string | null;
  /** `operating`: clients operate on it; `awaited`: they stopped, and it was not yet seen without a task. */
  operations: "none" | "operating" | "awaited" | "ended";
  /** Accepted, never asked to be deleted, and the API says that there is none. */
  lost: boolean;
}

/** Whether something still has to happen to it. */
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
