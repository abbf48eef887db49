import type {
  AcceptMoveOutcome,
  MoveEnd,
  MoveRecord,
  MoveState,
  MoveStore,
  MoveSweepQuery,
} from "../../../core/stores/api/move-store.ts";
import type { MoveRequest } from "../../../proto/gen/berth/scheduler.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** A row of the table: the record without its age, and the fields that only sweeps read. */
interface Move extends Omit<MoveRecord, "ageMs"> {
  readonly acceptedAtMs: number;
  readonly retryAtMs: number | null;
  readonly isAsked: boolean;
}

/** The in-process twin of the table of moves. Every call is one step. The rows live as long as this object. */
export class MemoryMoveStore implements MoveStore {
  /** In the order in which the moves were accepted. */
  readonly #moves = new Map<string, Move>();
  readonly #clock: Pick<Clock, "now">;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  async accept(moves: readonly MoveRequest[]): Promise<readonly AcceptMoveOutcome[]> {
    return moves.map((request) => {
      if (this.#moves.has(request.id)) return { kind: "accepted" };
      const waiting = this.#all().find((one) => isWaiting(one) && one.request.serverUuid === request.serverUuid);
      if (waiting) return { kind: "busy", running: waiting.request.kind };
      const nowMs = this.#clock.now();
      const times = { updatedAtMs: nowMs, acceptedAtMs: nowMs, retryAtMs: null };
      this.#moves.set(request.id, { request, state: "accepted", fault: null, ...times, putOffs: 0, isAsked: false });
      return { kind: "accepted" };
    });
  }

  async moves(ids: readonly string[]): Promise<readonly MoveRecord[]> {
    return ids
      .map((id) => this.#moves.get(id))
      .filter((move) => move !== undefined)
      .map((move) => this.#recordOf(move));
  }

  async waiting(serverUuids: readonly string[]): Promise<readonly MoveRecord[]> {
    const wanted = new Set(serverUuids);
    return this.all().filter((one) => isWaiting(one) && wanted.has(one.request.serverUuid));
  }

  async movesOf(serverUuid: string, limit: number): Promise<readonly MoveRecord[]> {
    const ofServer = this.all().filter(({ request }) => request.serverUuid === serverUuid);
    return ofServer.reverse().slice(0, limit);
  }

  async end(ends: readonly MoveEnd[]): Promise<void> {
    for (const { id, state, fault } of ends) {
      const move = this.#moves.get(id);
      const isEnding = move && (isWaiting(move) || (move.state === "refused" && state === "begun"));
      if (isEnding) this.#moves.set(id, { ...move, state, fault, updatedAtMs: this.#clock.now() });
    }
  }

  async markAsked(ids: readonly string[]): Promise<readonly string[]> {
    return this.#waiting(ids).map((move) => {
      this.#moves.set(move.request.id, { ...move, isAsked: true });
      return move.request.id;
    });
  }

  async giveUp(moves: readonly { readonly id: string; readonly fault: string }[]): Promise<readonly string[]> {
    const unasked = moves.filter(({ id }) => this.#waiting([id]).some(({ isAsked }) => !isAsked));
    await this.end(unasked.map((move) => ({ ...move, state: "refused" })));
    return unasked.map(({ id }) => id);
  }

  async putOff(putOffs: readonly { readonly id: string; readonly delayMs: number }[]): Promise<void> {
    for (const { id, delayMs } of putOffs) {
      for (const move of this.#waiting([id]))
        this.#moves.set(id, { ...move, retryAtMs: this.#clock.now() + delayMs, putOffs: move.putOffs + 1 });
    }
  }

  async staleMoves(
    untouchedMs: number,
    limit: number,
    { exceptCells, unlessOlderThanMs }: MoveSweepQuery = { exceptCells: [], unlessOlderThanMs: 0 },
  ): Promise<readonly string[]> {
    const nowMs = this.#clock.now();
    const isDue = (one: Move) => (one.retryAtMs ?? one.updatedAtMs + untouchedMs) <= nowMs;
    const mayGiveUp = (one: Move) => !one.isAsked && one.acceptedAtMs <= nowMs - unlessOlderThanMs;
    const stale = this.#all()
      .filter((one) => isWaiting(one) && isDue(one))
      .filter((one) => !exceptCells.includes(one.request.cell) || mayGiveUp(one))
      .sort((some, other) => some.updatedAtMs - other.updatedAtMs)
      .slice(0, limit);
    for (const one of stale)
      this.#moves.set(one.request.id, { ...one, updatedAtMs: nowMs, retryAtMs: nowMs + untouchedMs });
    return stale.map(({ request }) => request.id);
  }

  /** All moves of all servers that were ever accepted, for audits. */
  all(): readonly MoveRecord[] {
    return this.#all().map((move) => this.#recordOf(move));
  }

  #waiting(ids: readonly string[]): Move[] {
    return ids.flatMap((id) => this.#moves.get(id) ?? []).filter(isWaiting);
  }

  #recordOf({ request, state, fault, updatedAtMs, putOffs, acceptedAtMs }: Move): MoveRecord {
    return { request, state, fault, updatedAtMs, putOffs, ageMs: this.#clock.now() - acceptedAtMs };
  }

  #all(): Move[] {
    return [...this.#moves.values()];
  }
}

const isWaiting = ({ state }: { readonly state: MoveState }): boolean => state === "accepted";
