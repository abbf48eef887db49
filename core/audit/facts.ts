import type { ServerGroupMembership } from "../../proto/gen/berth/shared.ts";
import type { ProviderUuid } from "../ledger/ids.ts";
import type { LedgerDump } from "../ledger/ledger-dump.ts";
import type { KeptOffer } from "../ledger/merge-report.ts";
import type { AllocationItem, Consumer } from "../ledger/model.ts";
import type { RequestState } from "../stores/api/api-store.ts";
import type { Server } from "../tasks/server.ts";

/** One reading of one cell, taken from a single snapshot of its database. */
export interface CellReading {
  readonly cell: string;
  readonly ledger: Pick<LedgerDump, "providers"> & { readonly consumers: readonly AuditedConsumer[] };
  /** The sums of all allocations by provider and class, for readings whose consumers' items have no amounts. */
  readonly allocated?: readonly AllocationItem[];
  /** Resources that hosts no longer offer although servers use them, according to the latest reports. Empty by default. */
  readonly kept?: readonly KeptOffer[];
  /** The volumes of servers at rest of which nobody but the server's host knows whether the guest uses them. Empty by default. */
  readonly volumesInDoubt?: readonly VolumeInDoubt[];
  /** All servers except the rows of status CLOSED, which only prevent a dispatch. */
  readonly servers: readonly AuditedServer[];
  /** Servers that can never be dispatched in this cell. */
  readonly closed: ReadonlySet<string>;
  readonly openTasks: readonly AuditedTask[];
  /** Open moves, and ended ones that still hold the source's allocation. */
  readonly moves: readonly AuditedMove[];
  readonly hosts: ReadonlyMap<string, ProviderUuid>;
  /** How long each host has been up, at least. Hosts that are down are missing. */
  readonly upMs: ReadonlyMap<string, number>;
  /** The guests that run on each host, as its agent reports them. Hosts whose agent could not be asked are missing. */
  readonly runningGuests: ReadonlyMap<string, readonly RunningGuest[]>;
  /** Like `runningGuests`, but including guests that exist and do not run. */
  readonly copies: ReadonlyMap<string, readonly RunningGuest[]>;
}

/** The facts of a cell that do not belong to one server alone. Their number grows with the hosts, and not with the servers. */
export interface CellFrame extends Pick<CellReading, "cell" | "kept" | "volumesInDoubt" | "moves" | "hosts" | "upMs"> {
  readonly providers: LedgerDump["providers"];
  /** The sums of all allocations by provider and class. */
  readonly allocated: readonly AllocationItem[];
}

/** The facts that belong to the servers and consumers of a range of UUIDs. The servers' groups are null here. */
export interface CellSlice extends Pick<CellReading, "servers" | "closed" | "openTasks"> {
  readonly consumers: readonly AuditedConsumer[];
}

/** A consumer and what it holds. A large cell's audit reads only of which providers, once for each, because an index has them in order. */
export interface AuditedConsumer extends Pick<Consumer, "uuid" | "type"> {
  readonly items: readonly (Pick<AllocationItem, "provider"> & Partial<AllocationItem>)[];
}

/** A volume, and the one that was to replace it. */
export interface VolumeInDoubt {
  readonly serverUuid: string;
  readonly host: string | null;
  readonly volumeId: string;
  readonly replacedBy: string;
}

export type AuditedServer = Pick<Server, "uuid" | "status" | "taskState" | "host" | "attemptId"> & {
  /** Milliseconds since the server's row was last written. */
  readonly unchangedMs: number;
  /** The hard server group whose claims are checked. Null when the server has none, or one that only affects weighing. */
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
  /** Whether the move shows what it waits for. */
  readonly isWaitShown: boolean;
  /** False when the move is over and only holds the source's allocation. */
  readonly inFlight: boolean;
}

export interface AuditedTask {
  readonly id: string;
  readonly serverUuid: string;
  readonly kind: "build" | "delete" | "operate";
  /** The kind of the operation and its stage. Both are null for other tasks. */
  readonly operation: string | null;
  readonly stage: string | null;
  /** How long the task has had no owner with a valid lease. It is 0 while it has one. */
  readonly unattendedMs: number;
}

export interface RunningGuest {
  readonly serverUuid: string;
  readonly attemptId: string;
}

/** The facts of the API database. They are null when a cell is audited alone. */
export interface ApiFacts {
  readonly requests: readonly AuditedRequest[];
}

export interface AuditedRequest {
  readonly serverUuid: string;
  readonly state: RequestState;
  readonly cell: string | null;
  readonly untouchedMs: number;
  /** Milliseconds since the request was accepted or, for a `cancelled` one, since its deletion was requested. Of no meaning for a `dispatched` one. */
  readonly pendingMs: number;
}

export interface CloudFacts {
  readonly cells: readonly CellReading[];
  readonly api: ApiFacts | null;
}
