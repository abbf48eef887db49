import type { Caller } from "../../../proto/gen/berth/cell.ts";
import type { ListPosition } from "../cell/listed-servers.ts";
import type { QuotaExcess, QuotaLimits, StatedLimits } from "./quota-limits.ts";

/**
 * The state that a server which was deleted softly is to reach: it is stopped and kept, it runs again, or it is deleted for good because nobody has restored
 * it in time.
 */
export type SoftDeletionAim = "deleted" | "restored" | "reclaimed";

export interface SoftDeletion {
  readonly serverUuid: string;
  readonly aim: SoftDeletionAim;
  /** Rises with each new aim, so that nothing that was read before can be noted for it. */
  readonly version: number;
  /** The caller who asked for the aim. */
  readonly askedBy: Caller;
  /** How often the server's cell has begun an operation for this aim. */
  readonly tries: number;
}

export type RestoreOutcome =
  | { readonly kind: "restoring"; readonly deletion: SoftDeletion }
  | { readonly kind: "over-quota"; readonly excess: QuotaExcess }
  /** The server is not deleted softly, or is being deleted for good. */
  | { readonly kind: "not-deleted" };

/** The pause between two tries doubles with each try, up to this many times. */
export const DOUBLINGS_MAX = 10;

type Version = Pick<SoftDeletion, "serverUuid" | "version">;

/**
 * The servers that were deleted softly, in the API database. A server that is deleted softly is neither listed nor counted, from the same moment on.
 * The api that gets the deletion from `due` has the cell carry it out later. Both implementations (Postgres, in-memory) pass
 * test/contract/soft-deletion-store. Operating failures throw the store's error.
 */
export interface SoftDeletionStore {
  /** Deletes a server softly. Returns null for a server that is in no cell, or that is deleted in either way. */
  deleteSoftly(serverUuid: string, askedBy: Caller): Promise<SoftDeletion | null>;
  /**
   * Lists and counts the server again, unless it exceeds a quota. `defaults` are as for `ApiStore.acceptWithin`; null does not look at quotas.
   * `stated`: the limits of its project as another service states them.
   */
  restore(
    serverUuid: string,
    change: {
      readonly askedBy: Caller;
      readonly defaults: QuotaLimits | null;
      readonly stated?: StatedLimits | undefined;
    },
  ): Promise<RestoreOutcome>;
  /** The present aim for the server. Null when it has none. */
  softDeletion(serverUuid: string): Promise<SoftDeletion | null>;
  /** The places in lists of servers that are deleted softly, of the project or (null) of all, the latest deletions first. */
  softlyDeleted(projectId: string | null, limit: number): Promise<readonly ListPosition[]>;
  /**
   * Hands out deletions that are not settled. The first time is `untouchedMs` after the aim was set, and the time between two grows with each try, up
   * to 1,024 times as long.
   */
  due(untouchedMs: number, limit: number): Promise<readonly SoftDeletion[]>;
  /** Counts a try. Returns false when the server has another aim by now; then the caller must not begin anything for it. */
  noteTry(deletion: Version): Promise<boolean>;
  /** Notes that the cell has carried out the aim. Forgets a restored server, and one that is gone. */
  settle(deletion: Version): Promise<void>;
  /**
   * Deletes the server softly once more, from now on, because its cell could not restore it. It is not settled, since an operation that restores
   * the server may still be on its way to the cell.
   */
  abandonRestore(deletion: Version): Promise<void>;
  /** Has these servers deleted for good: one whose version is named, or all that were deleted softly at least `olderThanMs` ago. */
  reclaim(which: Version | { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
}
