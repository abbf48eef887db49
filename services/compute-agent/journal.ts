import type { AttemptFailure } from "../../core/tasks/build-task.ts";

/** Names one attempt's guest on one host. */
export interface GuestName {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
}

/** `prepared`: made, and never ran. `stopped`: it ran, and does not run now. */
export type GuestState = "building" | "prepared" | "running" | "stopped" | "paused";

/** One thing that happened on a host. Later records of the same guest replace earlier ones. Times: ms since the epoch. */
export type JournalRecord =
  /** The guest is about to be made, or is in this state. `revision`: of the latest order that it obeyed; `orderId`: if that put it there. */
  | (GuestName & {
      readonly kind: "guest";
      readonly state: GuestState;
      readonly atMs: number;
      readonly revision?: number | undefined;
      readonly orderId?: string;
    })
  /** The attempt failed and left nothing but this word. */
  | (GuestName & {
      readonly kind: "failed";
      readonly failure: AttemptFailure;
      readonly reason: string;
      readonly atMs: number;
    })
  /** The guest was removed. */
  | (GuestName & { readonly kind: "gone" })
  /** The attempt, or with an empty `attemptId` any attempt of the server, may never be built here again. */
  | (GuestName & { readonly kind: "tombstone"; readonly atMs: number })
  /** The host was compared with this incarnation of its cell's database. */
  | { readonly kind: "compared"; readonly host: string; readonly incarnation: string };

/**
 * What an agent remembers over its own death, in the order it happened. Both bodies (file, memory) pass
 * test/contract/agent-journal. Operating failures reject with a JournalError; after one, nothing can be appended any more.
 */
export interface Journal {
  /** All records, oldest first. Called once, before anything else. */
  load(): Promise<readonly JournalRecord[]>;
  /** Resolves when the record outlives a crash. Records appended at the same time share one write. */
  append(record: JournalRecord): Promise<void>;
  /**
   * Forget everything but what `survivors` returns; it is called when no write is under way. Records appended from then
   * on come after them.
   */
  compact(survivors: () => readonly JournalRecord[]): Promise<void>;
  /** Records written since the last compaction, or loaded. */
  readonly length: number;
  /** Waits for what was appended. */
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
