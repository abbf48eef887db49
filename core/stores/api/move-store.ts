import type { MoveRequest } from "../../../proto/gen/berth/scheduler.ts";

/**
 * `accepted`: a scheduler must find a host. `begun`: the server's cell has the operation. `refused`: the move was not begun, and the server
 * is unchanged.
 */
export type MoveState = "accepted" | "begun" | "refused";

/** A requested move that needs a host. Times are milliseconds since the epoch. */
export interface MoveRecord {
  readonly request: MoveRequest;
  readonly state: MoveState;
  /** Why the move was refused. */
  readonly fault: string | null;
  readonly updatedAtMs: number;
  /** How often the move was put off. */
  readonly putOffs: number;
  /** How long ago the move was accepted, by the store's own clock. */
  readonly ageMs: number;
}

export type AcceptMoveOutcome =
  | { readonly kind: "accepted" }
  /** Another move of the server is waiting for a host. `running` is its kind. */
  | { readonly kind: "busy"; readonly running: string };

/**
 * Accepted requests to move a server, in the API database. Once accepted, each move ends: it is either begun in its cell or refused with a
 * reason, whichever process dies. A server has at most one waiting move. Both implementations (Postgres, in-memory) pass
 * test/contract/move-store. Operating failures throw the store's error.
 */
export interface MoveStore {
  /** Answers in the order of the moves. Repeatable. */
  accept(moves: readonly MoveRequest[]): Promise<readonly AcceptMoveOutcome[]>;
  /** The known moves, in the order of the ids. */
  moves(ids: readonly string[]): Promise<readonly MoveRecord[]>;
  /** Moves of these servers that wait for a host. */
  waiting(serverUuids: readonly string[]): Promise<readonly MoveRecord[]>;
  /** At most `limit` moves of the server, youngest first. */
  movesOf(serverUuid: string, limit: number): Promise<readonly MoveRecord[]>;
  /**
   * Ends moves that are still accepted. The first end is final, with one exception: `begun` replaces `refused`. One scheduler may refuse a
   * move because its cell has not begun it, while another one asks the cell to begin it; the beginning is the fact.
   */
  end(ends: readonly MoveEnd[]): Promise<void>;
  /**
   * Records that the cells of these moves are about to be asked to begin them, and returns the ids of those that are still accepted. From
   * then on only the cell knows whether a move was begun, and `giveUp` does not change it.
   */
  markAsked(ids: readonly string[]): Promise<readonly string[]>;
  /** Refuses the moves that are accepted and that no cell was asked to begin. Returns their ids. */
  giveUp(moves: readonly { readonly id: string; readonly fault: string }[]): Promise<readonly string[]>;
  /** Postpones the next sweep of these moves by their delays. Only changes moves that are still accepted. */
  putOff(putOffs: readonly { readonly id: string; readonly delayMs: number }[]): Promise<void>;
  /**
   * Ids of accepted moves that no scheduler is working on, the longest untouched first. A move qualifies when it was not touched for
   * `untouchedMs` or when its put-off time has passed. Returning a move puts it off for `untouchedMs`, so that only one of several
   * concurrent sweeps gets it.
   */
  staleMoves(untouchedMs: number, limit: number, query?: MoveSweepQuery): Promise<readonly string[]>;
}

/** Selects the moves that a sweep takes. */
export interface MoveSweepQuery {
  /** Cells that cannot be reached. Moves of their servers are not taken … */
  readonly exceptCells: readonly string[];
  /** … unless they are older than this and no cell was asked to begin them, because such a move may be given up. */
  readonly unlessOlderThanMs: number;
}

export interface MoveEnd {
  readonly id: string;
  readonly state: "begun" | "refused";
  readonly fault: string | null;
}
