import type { AllocationRequest, ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { TransferProgress } from "../../agent/transfer-progress.ts";
import type { AllocationChange, Shortfall } from "../../ledger/allocation-change.ts";
import type { Holding } from "../../ledger/holding.ts";
import type { Migration } from "../../tasks/migration.ts";
import type { BeginOperation, OperationPosition, OperationSignal, OperationStep } from "../../tasks/operation-step.ts";
import type { TaskOutcome } from "../../tasks/task-record.ts";
import type { Fenced } from "../../tasks/tenure.ts";

/**
 * The records of a cell's database about operations, which are all actions on a server after its build (docs/decisions/0006). Every call is
 * one batch and one transaction, answered in order. Both implementations pass test/contract/operation-store.
 */
export interface OperationStore extends BeginStore, StepStore, MigrationStore {}

// --- called by schedulers and the API ---------------------------------------------------------------------------------

export type BeginOutcome =
  /** `xid` means the same as in DispatchOutcome. */
  | { readonly kind: "begun"; readonly xid: number }
  /** The same task is already stored. */
  | { readonly kind: "already-begun" }
  /** `closeTasks` has closed the operation. */
  | { readonly kind: "closed" }
  /** Another task of the server is open: `build`, `delete`, or an operation's kind. */
  | { readonly kind: "busy"; readonly running: string }
  /** The server has changed since the operation was planned, so the caller must read it again. */
  | { readonly kind: "changed" }
  /** The server is deleted, or was never in this cell. */
  | { readonly kind: "gone" }
  /** The host that is to be evacuated is up or coming back, and is not forced down. */
  | { readonly kind: "host-seen" }
  /** No conductor sees the host that is to be evacuated, but no operator has forced it down, so its guests may still run. */
  | { readonly kind: "host-unfenced" }
  /** The operation starts a guest (`startsGuest`) while another one is in quarantine and may run (`GUEST_IN_QUARANTINE`). */
  | { readonly kind: "quarantined" }
  | { readonly kind: "no-capacity"; readonly shortfalls: readonly Shortfall[] }
  /** The server's group does not allow the host. `inFlight` means that only servers in motion cause the conflict (GroupConflict). */
  | { readonly kind: "refused"; readonly why: string; readonly inFlight: boolean }
  /** A provider, an inventory or the server's allocations are not as planned. */
  | { readonly kind: "stale"; readonly why: string };

/**
 * Only a delete is allowed for a server in ERROR whose last move was broken off. Its allocations are kept where they were, so another move would
 * be planned from the wrong allocations. It may run at the destination, so a reboot could make it run at its home as well.
 */
export const MOVE_BROKEN_OFF =
  "an earlier move of the server was interrupted, and it is unknown where the server runs. Its guests and allocations are kept: save the guests' " +
  "data, then delete the server";

/** Why no operation begins for a server in ERROR whose move still waits for its confirmation: it is unknown what its two guests have. */
export const MOVE_IN_DOUBT =
  "a resize or migration of the server waits for its confirmation, and an order to one of its two guests came to an unknown end. Look at the guests on both hosts; then set the server to " +
  "active (os-resetState), which has it wait for its confirmation again, and confirm or revert the move, or delete the server";

/** An operator's request to set a server's status. A server in ERROR whose move waits for its confirmation becomes VERIFY_RESIZE instead of ACTIVE. */
export interface StatusReset {
  readonly serverUuid: string;
  readonly status: "ACTIVE" | "ERROR";
}

export type ResetOutcome =
  | { readonly kind: "reset" }
  /** `running` is the open task, or the move that waits for a confirmation. */
  | { readonly kind: "busy"; readonly running: string }
  /** The server is on no host. */
  | { readonly kind: "nowhere" }
  | { readonly kind: "gone" };

export type SignalOutcome =
  | "signalled"
  /** The operation has gone too far, or was aborted before (`HEARD_AT`). Nothing is written. */
  | "too-late"
  | "no-such-operation";

/** An operation that must not begin any more. */
export interface TaskClosing {
  readonly taskId: string;
  /** The server that it would be done to. */
  readonly serverUuid: string;
}

/** `begun`: the operation was begun before, and is not closed. */
export type ClosingOutcome = "closed" | "begun";

/** Changes the spec and the allocations of a server on its present host (`patchChange`), or the spec of one that is shelved and offloaded. */
export interface HoldingPatch {
  readonly serverUuid: string;
  /** The server's revision when the patch was planned. The patch is written only if it is unchanged. */
  readonly revision: number;
  readonly change: AllocationChange;
  /** The server's spec after the patch. */
  readonly spec: ServerSpec;
}
export type PatchOutcome =
  | { readonly kind: "patched"; readonly xid: number }
  | Extract<BeginOutcome, { readonly kind: "busy" | "changed" | "gone" | "no-capacity" | "stale" }>;

export interface BeginStore {
  /**
   * Takes effect at once, while no other task of the server is open. A plan made before the patch is answered with `changed` afterwards.
   */
  patchHoldings(patches: readonly HoldingPatch[]): Promise<readonly PatchOutcome[]>;
  begin(operations: readonly BeginOperation[]): Promise<readonly BeginOutcome[]>;
  /**
   * Makes sure that operations which have not begun never begin, however late the api that planned them is. What they were for can then be
   * given to others. Repeatable.
   */
  closeTasks(closings: readonly TaskClosing[]): Promise<readonly ClosingOutcome[]>;
  /**
   * How long ago an operator has said that the database was restored, or it was first seen on another timeline than before, as a restored one is and one to which the cell has failed over. It may lack
   * operations that have begun before. Null if neither has happened.
   */
  restoredAgoMs(): Promise<number | null>;
  /** How each task has ended: `open` if it has not, null if the cell has no such task. */
  outcomes(taskIds: readonly string[]): Promise<readonly (TaskOutcome | "open" | null)[]>;
  /** The claim of each attempt, with its mapping of request groups to providers. Null when there is no such attempt. */
  claimed(attemptIds: readonly string[]): Promise<readonly (AllocationRequest | null)[]>;
  /** The allocations of each consumer, or null for a consumer that has none. */
  holdings(consumerUuids: readonly string[]): Promise<readonly (Holding | null)[]>;
  /** Resets servers that are on a host and have no open task. Each server may occur once. The guest is not touched. */
  resetStatus(resets: readonly StatusReset[]): Promise<readonly ResetOutcome[]>;
  /**
   * Sends a signal to the conductor that carries out the operation. The task is released under a new epoch, so that the next conductor to
   * take it (by the caller's message, or by a sweep) sees the signal. `abort` returns the server to its source, and `force` completes a
   * live migration now. Signals are accepted only at the stages of `HEARD_AT`, and an accepted signal always takes effect.
   */
  signal(
    signals: readonly { readonly taskId: string; readonly signal: OperationSignal }[],
  ): Promise<readonly SignalOutcome[]>;
}

// --- called by conductors ---------------------------------------------------------------------------------------------

export type StepOutcome =
  /** The step was written now or earlier under the same epoch. `revision` is the server's new revision. */
  | { readonly kind: "committed"; readonly revision: number }
  /** The ledger, the server group or the state of the source host forbids the step. Nothing is written. */
  | { readonly kind: "refused"; readonly why: string }
  | Fenced;

export interface StepStore {
  /** Positions of the existing tasks, in the order of the ids. */
  positions(taskIds: readonly string[]): Promise<readonly OperationPosition[]>;
  commitStep(steps: readonly OperationStep[]): Promise<readonly StepOutcome[]>;
  /** Records how far hand-overs have come, for people to see. Migrations that have ended, or that do not exist, are left out. */
  noteTransfers(notes: readonly TransferNote[]): Promise<void>;
}

export interface TransferNote {
  readonly migrationUuid: string;
  readonly progress: TransferProgress;
}

// --- migrations ------------------------------------------------------------------------------------------------------

export interface MigrationQuery {
  readonly serverUuid?: string | undefined;
  readonly uuids?: readonly string[] | undefined;
  /** Matches the source host or the destination host. */
  readonly host?: string | undefined;
  readonly inFlightOnly?: boolean | undefined;
  /** Only migrations that follow this one in the list. The store must have it. */
  readonly after?: string | undefined;
  /** Only migrations that were begun at this time or earlier, in milliseconds since the epoch. */
  readonly untilMs?: number | undefined;
  readonly limit: number;
}

/** A host whose guests are known, either from its agent or because an operator has fenced it. */
export interface ComparedHost {
  readonly host: string;
  /** The guests that are on the host. A fenced host has none. */
  readonly remaining: readonly { readonly serverUuid: string; readonly attemptId: string }[];
  /**
   * The consumers that `hostRecords` listed for the host before it was asked for its guests. The host's answer releases nothing else,
   * because it may be older than a guest for which something is held since. When this is absent, the answer applies to everything held
   * there.
   */
  readonly held?: readonly string[];
}

/**
 * Whether something is held for one of the remaining guests. With `attemptId` null it is held for every guest of the server except
 * `claimedAttemptIds`. These are the server's present guest, and the guests at the source and the destination of its open move: each of them has an
 * allocation of its own. The exception matters when a server comes back to a host where it left an old guest, also if it moves away again before the
 * host is compared. None of them can be the old guest, since a server that comes back does so under a new attempt.
 */
export function isHeldFor(
  held: {
    readonly serverUuid: string;
    readonly attemptId: string | null;
    readonly claimedAttemptIds: readonly (string | null)[];
  },
  remaining: ComparedHost["remaining"],
): boolean {
  return remaining.some(({ serverUuid, attemptId }) => {
    if (serverUuid !== held.serverUuid) return false;
    return held.attemptId === null ? !held.claimedAttemptIds.includes(attemptId) : attemptId === held.attemptId;
  });
}

export interface MigrationStore {
  /** Migrations, youngest first and then by UUID. The times in Postgres have microseconds. The list includes unreadable migrations. */
  migrations(query: MigrationQuery): Promise<readonly Migration[]>;
  /**
   * Resizes and cold migrations that have waited for their confirmation for `waitedMs`, by the UUIDs of their servers, each of which has one at
   * most. A page begins behind the server `after`, which need not exist. Null is the first page.
   */
  unconfirmed(waitedMs: number, limit: number, after: string | null): Promise<readonly Migration[]>;
  /**
   * Takes the guest lists of hosts that have answered, or are known to be fenced. Releases what is held there for guests that moved away or
   * could not be destroyed, except for the guests that remain. Returns the UUIDs of the releasing consumers for each host.
   */
  releaseEvacuated(hosts: readonly ComparedHost[]): Promise<readonly (readonly string[])[]>;
  /**
   * For each server, whether a guest of it may be on a host where it is not at home: something is held for the guest (`HostRecord.held`), it is in
   * quarantine, or it may be forgotten: the database has lost commits (`restoredAgoMs`), the server is not known to be younger than that (`LOSS_MARGIN_MS`), and a host was not compared
   * since. A host that is forced down counts as compared.
   */
  guestsLeft(serverUuids: readonly string[]): Promise<readonly boolean[]>;
  /** Hosts that an operator has forced down, and so declared fenced, and on which something is still held for guests. Sorted. */
  fencedSources(): Promise<readonly string[]>;
  /**
   * Consumers of the types of servers and moves that match nothing in this cell: no server with a home, and no move that holds something.
   * Cost: examines as many consumers as `look` says, not all of them.
   */
  orphans(look: OrphanLook): Promise<OrphanPage>;
}

/** Selects the consumers to examine: the next ones in the order of their UUIDs, and the ones in `again`. */
export interface OrphanLook {
  /** The position where the previous look ended, or null to begin with the first consumer. */
  readonly after: string | null;
  readonly lookAt: number;
  readonly again: readonly string[];
  /** Maximum number of consumers that are returned. */
  readonly limit: number;
}

export interface OrphanPage {
  /** UUIDs, sorted. */
  readonly orphans: readonly string[];
  /** The position where the next look continues, or null when it must begin again. */
  readonly next: string | null;
}
