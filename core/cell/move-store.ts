import type { MoveRequest } from "../../proto/gen/berth/scheduler.ts";

/**
 * `accepted`: a scheduler is to find a host. `begun`: the server's cell has the operation. `refused`: it was not begun, and the server
 * stays as it is.
 */
export type MoveState = "accepted" | "begun" | "refused";

/** A move that was asked for and needs a host. Times are milliseconds since the epoch. */
export interface MoveRecord {
  readonly request: MoveRequest;
  readonly state: MoveState;
  /** Why it was refused. */
  readonly fault: string | null;
  readonly updatedAtMs: number;
  /** How often it was put off. */
  readonly putOffs: number;
  /** How long ago it was accepted, by the store's own clock. */
  readonly ageMs: number;
}

export type AcceptMoveOutcome =
  | { readonly kind: "accepted" }
  /** Another move of the server waits for a host; its kind. */
  | { readonly kind: "busy"; readonly running: string };

/**
 * Accepted requests to move a server, in the API database: from `accept` on each of them ends, begun in its cell or refused with a
 * reason, whoever dies. A server has at most one that waits. Both bodies (Postgres, in-memory) pass test/contract/move-store.
 * Operating failures throw the store's error.
 */
export interface MoveStore {
  /** Answers in the order of the moves. Repeatable. */
  accept(moves: readonly MoveRequest[]): Promise<readonly AcceptMoveOutcome[]>;
  /** Those that are known, in the order of the ids. */
  moves(ids: readonly string[]): Promise<readonly MoveRecord[]>;
  /** Those that wait for a host, of these servers. */
  waiting(serverUuids: readonly string[]): Promise<readonly MoveRecord[]>;
  /** All of a server, the youngest first. */
  movesOf(serverUuid: string, limit: number): Promise<readonly MoveRecord[]>;
  /** Only of those that are accepted: the first end holds. */
  end(ends: readonly MoveEnd[]): Promise<void>;
  /**
   * Notes that the moves' cells are about to be asked to begin them; returns the ids of those that are still accepted. From then on only
   * the cell knows whether the move was begun, and `giveUp` leaves it alone.
   */
  markAsked(ids: readonly string[]): Promise<readonly string[]>;
  /** Refuses those that are accepted and that no cell was asked to begin; returns their ids. */
  giveUp(moves: readonly { readonly id: string; readonly fault: string }[]): Promise<readonly string[]>;
  /** A sweep takes them after their delays, and not earlier. Only of those that are accepted. */
  putOff(putOffs: readonly { readonly id: string; readonly delayMs: number }[]): Promise<void>;
  /**
   * Ids of accepted moves that nobody works on, the longest untouched first: untouched for `untouchedMs`, or put off until now. Handing
   * one out puts it off for `untouchedMs`, so that of several sweeping at once only one gets it.
   */
  staleMoves(untouchedMs: number, limit: number, query?: MoveSweepQuery): Promise<readonly string[]>;
}

/** Which moves a sweep takes. */
export interface MoveSweepQuery {
  /** Cells that cannot be reached: what lives there stays where it is … */
  readonly exceptCells: readonly string[];
  /** … unless it is so old and no cell was asked to begin it: then it may be given up. */
  readonly unlessOlderThanMs: number;
}

export interface MoveEnd {
  readonly id: string;
  readonly state: "begun" | "refused";
  readonly fault: string | null;
}
