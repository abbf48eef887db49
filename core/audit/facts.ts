import type { ServerGroupMembership } from "../../proto/gen/berth/shared.ts";
import type { RequestState } from "../cell/api-store.ts";
import type { Server } from "../cell/server.ts";
import type { ProviderUuid } from "../ledger/ids.ts";
import type { LedgerDump } from "../ledger/ledger-port.ts";

/** What one reading of one cell says, all of it from one snapshot of its database. */
export interface CellReading {
  readonly cell: string;
  readonly ledger: LedgerDump;
  /** Without the rows that only close a door (status CLOSED). */
  readonly servers: readonly AuditedServer[];
  /** Servers that can never be in this cell. */
  readonly closed: ReadonlySet<string>;
  readonly openTasks: readonly AuditedTask[];
  /** Moves that are not over, and those that still hold what their source had. */
  readonly moves: readonly AuditedMove[];
  readonly hosts: ReadonlyMap<string, ProviderUuid>;
  /** For how long hosts have been up, at least; those that are down are missing. */
  readonly upMs: ReadonlyMap<string, number>;
  /** Per host what runs there, by the agents' own word; hosts whose agent could not be asked are missing. */
  readonly runningGuests: ReadonlyMap<string, readonly RunningGuest[]>;
  /** As `runningGuests`, with the guests that exist and do not run. */
  readonly copies: ReadonlyMap<string, readonly RunningGuest[]>;
}

export type AuditedServer = Pick<Server, "uuid" | "status" | "taskState" | "host" | "attemptId"> & {
  /** Since its row was written last. */
  readonly unchangedMs: number;
  /** The server group whose claims are checked (a hard policy); null: none, or one that only weighs hosts. */
  readonly group: AuditedGroup | null;
};

export type AuditedGroup = Pick<ServerGroupMembership, "uuid" | "policy" | "maxServerPerHost">;

export interface AuditedMove {
  readonly uuid: string;
  readonly serverUuid: string;
  readonly sourceHost: string | null;
  readonly sourceAttemptId: string | null;
  readonly destHost: string;
  readonly destAttemptId: string;
  /** It says what it waits for. */
  readonly isWaitShown: boolean;
  /** False: it is over, and only holds what its source had. */
  readonly inFlight: boolean;
}

export interface AuditedTask {
  readonly id: string;
  readonly serverUuid: string;
  readonly kind: "build" | "delete" | "operate";
  /** What kind of operation, and at which stage it is; null: none. */
  readonly operation: string | null;
  readonly stage: string | null;
  /** How long it has belonged to nobody whose lease is valid; 0 while somebody works on it. */
  readonly unattendedMs: number;
}

export interface RunningGuest {
  readonly serverUuid: string;
  readonly attemptId: string;
}

/** What the API database says; null facts about it mean that a cell is audited alone. */
export interface ApiFacts {
  readonly requests: readonly AuditedRequest[];
}

export interface AuditedRequest {
  readonly serverUuid: string;
  readonly state: RequestState;
  readonly cell: string | null;
  readonly untouchedMs: number;
  /** Since it was asked for; if `cancelled`, since it was asked to be deleted. */
  readonly pendingMs: number;
}

export interface CloudFacts {
  readonly cells: readonly CellReading[];
  readonly api: ApiFacts | null;
}
