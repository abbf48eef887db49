import type { Operation, Task } from "../../proto/gen/berth/cell.ts";
import type { AllocationRequest, ServerGroupMembership, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { AllocationChange, Shortfall } from "../ledger/allocation-change.ts";
import type { AllocationItem } from "../ledger/model.ts";
import type { OperationKind } from "../tasks/operation-kinds.ts";
import type { AttemptResult, ServerStatus } from "./server.ts";
import type { Fenced, TaskClaim } from "./task-claim.ts";

/**
 * What a cell's database knows of operations: everything that is done to a server after it was built (docs/decisions/0006).
 * Every call is one batch and one transaction, answered in order. Both bodies pass test/contract/operation-store.
 */
export interface OperationStore extends BeginStore, StepStore, MigrationStore {}

// --- from above ------------------------------------------------------------------------------------------------------

/** An operation as somebody wants it to begin; `planOperation` makes it from what the cell says of the server. */
export interface BeginOperation {
  /** Kind `operate`. Its id is the operation's, and a move's migration uuid. */
  readonly task: Task;
  /** Of the server when the operation was planned: it may not have changed since. */
  readonly revision: number;
  readonly status: ServerStatus;
  /** What it takes and notes at once; of a move the migration and the claim of its first destination. */
  readonly write: StepWrite;
}

export type BeginOutcome =
  /** `xid`: as of a dispatch. */
  | { readonly kind: "begun"; readonly xid: number }
  /** This very task is stored already. */
  | { readonly kind: "already-begun" }
  /** One operation at a time: what runs (`build`, `delete`, or an operation's kind). */
  | { readonly kind: "busy"; readonly running: string }
  /** The server is another than it was when this was planned: read it again. */
  | { readonly kind: "changed" }
  /** Deleted, or never here. */
  | { readonly kind: "gone" }
  /** The host that is to be evacuated is up, or coming back, and is not forced down. */
  | { readonly kind: "host-seen" }
  /** Nobody sees the host that is to be evacuated, but no operator has forced it down, so that its guests may still run. */
  | { readonly kind: "host-unfenced" }
  | { readonly kind: "no-capacity"; readonly shortfalls: readonly Shortfall[] }
  /** The server's group does not let it go there. `inFlight`: only because of servers that are on their way (GroupConflict). */
  | { readonly kind: "refused"; readonly why: string; readonly inFlight: boolean }
  /** A provider, an inventory or the holdings are not as planned. */
  | { readonly kind: "stale"; readonly why: string };

/** Why a server in ERROR cannot move whose last move was broken off, with all that it holds kept where it was. */
export const MOVE_BROKEN_OFF =
  "an earlier move of the server was broken off, and what it holds is kept: delete the server";

/** What a consumer holds now. */
export interface Holding {
  readonly generation: number;
  readonly items: readonly AllocationItem[];
}

/** An operator says what a server is. */
export interface StatusReset {
  readonly serverUuid: string;
  readonly status: "ACTIVE" | "ERROR";
}

export type ResetOutcome =
  | { readonly kind: "reset" }
  /** What runs, or waits for a confirmation. */
  | { readonly kind: "busy"; readonly running: string }
  /** It is on no host. */
  | { readonly kind: "nowhere" }
  | { readonly kind: "gone" };

export type SignalOutcome =
  | "signalled"
  /** It has gone too far, or was called off already (`HEARD_AT`); nothing is written. */
  | "too-late"
  | "no-such-operation";

/** A change of what a server is and holds where it is (`patchChange`). */
export interface HoldingPatch {
  readonly serverUuid: string;
  /** Of the server when the patch was planned: it may not have changed since. */
  readonly revision: number;
  readonly change: AllocationChange;
  /** The server as it is to be. */
  readonly spec: ServerSpec;
}
export type PatchOutcome =
  | { readonly kind: "patched"; readonly xid: number }
  | Extract<BeginOutcome, { readonly kind: "busy" | "changed" | "gone" | "no-capacity" | "stale" }>;

export interface BeginStore {
  /** Takes effect at once, while nothing else is done to the server; what is planned for the server as it was is `changed` then. */
  patchHoldings(patches: readonly HoldingPatch[]): Promise<readonly PatchOutcome[]>;
  begin(operations: readonly BeginOperation[]): Promise<readonly BeginOutcome[]>;
  /** What was claimed for each attempt, with its mapping of request groups to providers; null: there is no such attempt. */
  claimed(attemptIds: readonly string[]): Promise<readonly (AllocationRequest | null)[]>;
  /** Null: it holds nothing. */
  holdings(consumerUuids: readonly string[]): Promise<readonly (Holding | null)[]>;
  /** Only of servers that are on a host, with nothing under way; a server at most once. Its guest is not touched. */
  resetStatus(resets: readonly StatusReset[]): Promise<readonly ResetOutcome[]>;
  /**
   * Tell whoever carries out the operation something: it is freed under a new epoch, so that the next one to take it (by the
   * message that the caller publishes, or a sweep) goes on with that in mind. `abort`: back to the source; `force`: complete a live
   * migration now. Only at the stages of `HEARD_AT`: what was signalled is what happens.
   */
  signal(
    signals: readonly { readonly taskId: string; readonly signal: OperationSignal }[],
  ): Promise<readonly SignalOutcome[]>;
}

export type OperationSignal = "abort" | "force";

// --- of the conductors -----------------------------------------------------------------------------------------------

/** Where an operation is, by its rows. */
export interface OperationPosition {
  readonly taskId: string;
  readonly stage: string;
  /** How many steps were committed; the next one writes this number plus one. */
  readonly step: number;
  readonly selection: number;
  readonly signal: OperationSignal | null;
  readonly revision: number;
  /** The reason with which it went back (`restoring`); "" while it goes forward. */
  readonly reason: string;
}

/** One arrow of an operation's machine, as one transaction writes it. */
export interface OperationStep extends TaskClaim, StepWrite {
  /** Steps committed before this one. */
  readonly step: number;
}

export interface StepWrite {
  /** Where it goes on; null: the operation ends, as `outcome`. */
  readonly stage: string | null;
  readonly outcome: "success" | "error" | null;
  readonly selection: number;
  readonly reason: string;
  readonly server: {
    /** What is absent stays. */
    readonly status?: ServerStatus | undefined;
    readonly taskState: string | null;
    readonly home?: { readonly host: string; readonly attemptId: string } | null | undefined;
    readonly spec?: ServerSpec | undefined;
    /** Shown to the owner. */
    readonly fault?: string | undefined;
  };
  /** Of the operation's migration. */
  readonly migration: {
    readonly uuid: string;
    readonly status: string;
    readonly destHost: string;
    readonly destAttemptId: string;
    /** It is over. One that is not over keeps its guests from being cleared away. */
    readonly ended: boolean;
    /** Its consumer keeps the source's allocation although it is over: an evacuated host that has not come back. */
    readonly holdsSource: boolean;
    /** Whether the server runs while it waits for its confirmation. */
    readonly runs: boolean;
    /** What people should know of it now: what is awaited, or why it was not confirmed or reverted; "" if there is nothing to say. */
    readonly note: string;
  } | null;
  /** Ends and beginnings of attempts; `result` null: it begins. */
  readonly attempts: readonly {
    readonly selection: number;
    readonly host: string;
    readonly result: AttemptResult | null;
    readonly reason: string;
  }[];
  readonly change: AllocationChange | null;
  /**
   * The source of an evacuation. Refused unless an operator has forced the host down, which is the word that it is fenced; or, with
   * `fenceWaived`, unless the host is down and nobody has seen its agent for `unseenMs`.
   */
  readonly evacuated?: { readonly host: string; readonly unseenMs: number; readonly fenceWaived: boolean } | undefined;
  /** Of a hard group: refused if it does not let the server go there. */
  readonly group?: { readonly membership: ServerGroupMembership; readonly toHost: string } | undefined;
  /** A guest that may be left on this host: what `change` moves to this consumer is kept until the host says that it is gone. */
  readonly leftover?: { readonly uuid: string; readonly host: string } | undefined;
}

export type StepOutcome =
  /** Or this very step was before, under the same epoch. `revision`: the server's from now on. */
  | { readonly kind: "committed"; readonly revision: number }
  /** The ledger, the group or the source host forbid it; nothing is written. */
  | { readonly kind: "refused"; readonly why: string }
  | Fenced;

export interface StepStore {
  /** Of those that exist, in the order of the ids. */
  positions(taskIds: readonly string[]): Promise<readonly OperationPosition[]>;
  commitStep(steps: readonly OperationStep[]): Promise<readonly StepOutcome[]>;
}

// --- migrations ------------------------------------------------------------------------------------------------------

/** What the row of a move has by itself. Statuses are Nova's. */
export interface MigrationColumns {
  readonly uuid: string;
  readonly serverUuid: string;
  readonly kind: OperationKind;
  readonly status: string;
  readonly sourceHost: string | null;
  readonly sourceAttemptId: string | null;
  readonly destHost: string;
  readonly destAttemptId: string;
  readonly ended: boolean;
  readonly holdsSource: boolean;
  /** What people should know of it now; "" if there is nothing to say. */
  readonly note: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface ReadableMigration extends MigrationColumns {
  /** As it began: its source's holdings, all destinations, the server before. */
  readonly operation: Operation;
  /** The server as it is to be afterwards. */
  readonly server: ServerSpec;
}

/** Its task is damaged, or of a version that this one does not know. Its note says so. */
export interface UnreadableMigration extends MigrationColumns {
  readonly operation: null;
  readonly server: null;
}

/** A move, past or present. */
export type Migration = ReadableMigration | UnreadableMigration;

export interface MigrationQuery {
  readonly serverUuid?: string | undefined;
  readonly uuids?: readonly string[] | undefined;
  /** Source or destination. */
  readonly host?: string | undefined;
  readonly inFlightOnly?: boolean | undefined;
  /** Only what follows this migration, which the store has, in the list. */
  readonly after?: string | undefined;
  /** Only those that were begun then or before, in milliseconds since the epoch. */
  readonly untilMs?: number | undefined;
  readonly limit: number;
}

/** A host by its own word, or by an operator's who has fenced it. */
export interface ComparedHost {
  readonly host: string;
  /** Guests that are there; none of a host that is fenced. */
  readonly remaining: readonly { readonly serverUuid: string; readonly attemptId: string }[];
  /**
   * What was held on the host, by `holdForGuests`, before it was asked for its guests: nothing else is given back by its answer, which may be
   * older than a guest that something is held for since. Absent: all that is held there.
   */
  readonly held?: readonly string[];
}

/**
 * Whether one of the guests that remain is the one that something is held for. `attemptId` null: it is held for every guest of the server
 * except `homeAttemptId`, the guest that the server has now, which holds what it needs itself: a server may come back to a host that
 * has left a guest of it behind.
 */
export function isHeldFor(
  held: { readonly serverUuid: string; readonly attemptId: string | null; readonly homeAttemptId: string | null },
  remaining: ComparedHost["remaining"],
): boolean {
  return remaining.some(({ serverUuid, attemptId }) => {
    if (serverUuid !== held.serverUuid) return false;
    return held.attemptId === null ? attemptId !== held.homeAttemptId : attemptId === held.attemptId;
  });
}

export interface MigrationStore {
  /** The youngest first, of the same time by uuid; in Postgres that time has microseconds. One that cannot be read is listed as such. */
  migrations(query: MigrationQuery): Promise<readonly Migration[]>;
  /** Resizes and cold migrations that have waited so long for their confirmation; the oldest first. */
  unconfirmed(waitedMs: number, limit: number): Promise<readonly Migration[]>;
  /** For each host the consumers that hold something there for guests that moved away or could not be destroyed. Sorted. */
  holdForGuests(hosts: readonly string[]): Promise<readonly (readonly string[])[]>;
  /**
   * These hosts have said what guests they have, or are known to be fenced: what is still held there for guests that moved away or could
   * not be destroyed is given back, except for the guests that remain. Returns the uuids of what gave back, of each host.
   */
  releaseEvacuated(hosts: readonly ComparedHost[]): Promise<readonly (readonly string[])[]>;
  /** Hosts that an operator has forced down, which is to say fenced, and at which something is still held for guests. Sorted. */
  fencedSources(): Promise<readonly string[]>;
  /**
   * Consumers of the types that servers and moves have, and that are none of this cell: there is no server with a home, or no move that
   * holds something. Cost: looks at so many consumers as the look says, not at all of them.
   */
  strays(look: StrayLook): Promise<StrayPage>;
}

/** Which consumers are looked at: the next ones in the order of their uuids, and some again. */
export interface StrayLook {
  /** Where the look before ended; null: from the first one on. */
  readonly after: string | null;
  readonly lookAt: number;
  readonly again: readonly string[];
  /** Most that are named. */
  readonly limit: number;
}

export interface StrayPage {
  /** Sorted. */
  readonly strays: readonly string[];
  /** Where the next look goes on; null: it begins again. */
  readonly next: string | null;
}
