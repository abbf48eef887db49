import type { StopCause } from "../../core/agent/stop-cause.ts";
import type { AttemptFailure } from "../../core/tasks/build-task.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";

/** Names one attempt's guest on one host. */
export interface GuestName {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
}

/** `prepared`: the guest was created and has never run. `stopped`: the guest has run and does not run now. `suspended`: the same, and its memory is saved. `rescued`: the guest runs from a rescue image. */
export type GuestState = "building" | "prepared" | "running" | "stopped" | "paused" | "suspended" | "rescued";

/** The database with which a host was compared. */
export interface ComparedWith {
  readonly incarnation: string;
  readonly cell?: string | undefined;
}

/** One event on a host. A later record of a guest replaces earlier ones. Times are milliseconds since the epoch. */
export type JournalRecord =
  /**
   * The guest is about to be created, or is in this state. `revision` belongs to the latest order that the guest obeyed. `orderId` is set
   * if that order brought it into this state. `listensAt` is where a prepared guest waits for a hand-over. `cause` is
   * set for a stopped guest that stopped without an order. `volumes` are connected to the guest from this record on; a record without them leaves
   * them as they were. `isFound`: the agent had no record of the guest, and found it at its driver; it stays so until the guest obeys an order.
   */
  | (GuestName & {
      readonly kind: "guest";
      readonly state: GuestState;
      readonly atMs: number;
      readonly revision?: number | undefined;
      readonly orderId?: string;
      readonly listensAt?: string;
      readonly cause?: StopCause;
      readonly volumes?: readonly ServerVolume[];
      readonly isFound?: boolean;
    })
  /** The attempt failed and left nothing but this report. */
  | (GuestName & {
      readonly kind: "failed";
      readonly failure: AttemptFailure;
      readonly reason: string;
      readonly atMs: number;
    })
  /** The guest was removed. */
  | (GuestName & { readonly kind: "gone" })
  /** The attempt may never be built here again. With an empty `attemptId` this holds for all attempts of the server. */
  | (GuestName & { readonly kind: "tombstone"; readonly atMs: number })
  /** The host was compared with this incarnation of its cell's database. Conductors of older versions do not name the cell. */
  | ({ readonly kind: "compared"; readonly host: string } & ComparedWith);

/**
 * The records that an agent needs after its own crash, in the order of the events. Both implementations (file, memory) pass
 * test/contract/agent-journal. Operating failures reject with a JournalError, after which nothing more can be appended.
 */
export interface Journal {
  /** Returns all records, oldest first. Called once, before anything else. */
  load(): Promise<readonly JournalRecord[]>;
  /** Resolves when the record survives a crash. Records that are appended at the same time share one write. */
  append(record: JournalRecord): Promise<void>;
  /**
   * Replaces all records with the result of `survivors`, which is called while no write is in progress. Records that are appended after
   * that follow the survivors.
   */
  compact(survivors: () => readonly JournalRecord[]): Promise<void>;
  /** Number of records written since the last compaction or loaded. */
  readonly length: number;
  /** Waits until everything that was appended is written. */
  close(): Promise<void>;
}

export type JournalErrorCode = "corrupt" | "locked" | "io" | "closed";

export class JournalError extends Error {
  override readonly name = "JournalError";
  readonly code: JournalErrorCode;

  constructor(code: JournalErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}
