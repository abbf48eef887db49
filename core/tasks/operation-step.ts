import type { Task } from "../../proto/gen/berth/cell.ts";
import type { ServerGroupMembership, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { AllocationChange } from "../ledger/allocation-change.ts";
import type { AttemptResult, ServerStatus } from "./server.ts";
import type { Tenure } from "./tenure.ts";

/** An operation that is requested to begin. `planOperation` creates it from the cell's facts about the server. */
export interface BeginOperation {
  /** A task of kind `operate`. Its id is also the operation's id and, for a move, the migration's UUID. */
  readonly task: Task;
  /** The server's revision when the operation was planned. The operation begins only if it is unchanged. */
  readonly revision: number;
  readonly status: ServerStatus;
  /** The first write of the operation. For a move it contains the migration and the claim of the first destination. */
  readonly write: StepWrite;
}

export type OperationSignal = "abort" | "force";

/** The progress of an operation, by its rows. */
export interface OperationPosition {
  readonly taskId: string;
  readonly stage: string;
  /** How many steps were committed. The next step writes this number plus one. */
  readonly step: number;
  readonly selection: number;
  readonly signal: OperationSignal | null;
  readonly revision: number;
  /** Why the operation goes back (`restoring`). Empty while the operation goes forward. */
  readonly reason: string;
}

/** One transition of an operation's state machine, written in one transaction. */
export interface OperationStep extends Tenure, StepWrite {
  /** Number of steps that were committed before this one. */
  readonly step: number;
}

export interface StepWrite {
  /** The next stage, or null when the operation ends with `outcome`. */
  readonly stage: string | null;
  readonly outcome: "success" | "error" | null;
  readonly selection: number;
  readonly reason: string;
  readonly server: {
    /** An absent field leaves the stored value unchanged. */
    readonly status?: ServerStatus | undefined;
    readonly taskState: string | null;
    readonly home?: { readonly host: string; readonly attemptId: string } | null | undefined;
    readonly spec?: ServerSpec | undefined;
    /** Shown to the server's owner. */
    readonly fault?: string | undefined;
    /** The database has lost commits, and it is unknown where the server runs. */
    readonly uncertain?: true | undefined;
  };
  /** The operation's migration, or null when it has none. */
  readonly migration: {
    readonly uuid: string;
    readonly status: string;
    readonly destHost: string;
    readonly destAttemptId: string;
    /** Whether the move is over. The guests of an open move are not cleared away. */
    readonly ended: boolean;
    /** The move's consumer keeps the source's allocation although the move is over, because an evacuated host has not come back. */
    readonly holdsSource: boolean;
    /** Whether the server runs while the move waits for its confirmation. */
    readonly runs: boolean;
    /** A note for people: what the move waits for, or why it was not confirmed or reverted. Empty when there is nothing to say. */
    readonly note: string;
  } | null;
  /** Attempts that begin (`result` is null) or end. */
  readonly attempts: readonly {
    readonly selection: number;
    readonly host: string;
    readonly result: AttemptResult | null;
    readonly reason: string;
  }[];
  readonly change: AllocationChange | null;
  /**
   * The source of an evacuation. The step is refused unless an operator has forced the host down, which asserts that it is fenced. With
   * `fenceWaived`, the step is refused unless the host is down and its agent was unseen for `unseenMs`.
   */
  readonly evacuated?: { readonly host: string; readonly unseenMs: number; readonly fenceWaived: boolean } | undefined;
  /**
   * The attempt whose guest may run because of the order of the next stage (`attemptStartedAt`). The step is refused while a further guest of the server is
   * in quarantine, which may run.
   */
  readonly startsAttempt?: string | undefined;
  /** The hard server group. The step is refused when the group does not allow the server on `toHost`. */
  readonly group?: { readonly membership: ServerGroupMembership; readonly toHost: string } | undefined;
  /**
   * A guest that may be left on this host. The allocation that `change` moves to this consumer is kept until the host reports that the
   * guest is gone.
   */
  readonly leftover?: { readonly uuid: string; readonly host: string } | undefined;
}
