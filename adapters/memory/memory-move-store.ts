import type { AcceptMoveOutcome, MoveEnd, MoveRecord, MoveStore } from "../../core/cell/move-store.ts";
import type { MoveRequest } from "../../proto/gen/berth/scheduler.ts";
import type { Clock } from "../../runtime/clock.ts";

/** The in-process twin of the moves' table: every call is one step, and lasts as long as this object. */
export class MemoryMoveStore implements MoveStore {
  /** In the order in which they were accepted. */
  readonly #moves = new Map<string, MoveRecord>();
  readonly #clock: Pick<Clock, "now">;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  async accept(moves: readonly MoveRequest[]): Promise<readonly AcceptMoveOutcome[]> {
    return moves.map((request) => {
      if (this.#moves.has(request.id)) return { kind: "accepted" };
      const waiting = this.#all().find((one) => isWaiting(one) && one.request.serverUuid === request.serverUuid);
      if (waiting) return { kind: "busy", running: waiting.request.kind };
      this.#moves.set(request.id, { request, state: "accepted", fault: null, updatedAtMs: this.#clock.now() });
      return { kind: "accepted" };
    });
  }

  async moves(ids: readonly string[]): Promise<readonly MoveRecord[]> {
    return ids.map((id) => this.#moves.get(id)).filter((record) => record !== undefined);
  }

  async waiting(serverUuids: readonly string[]): Promise<readonly MoveRecord[]> {
    const wanted = new Set(serverUuids);
    return this.#all().filter((one) => isWaiting(one) && wanted.has(one.request.serverUuid));
  }

  async movesOf(serverUuid: string, limit: number): Promise<readonly MoveRecord[]> {
    const ofServer = this.#all().filter(({ request }) => request.serverUuid === serverUuid);
    return ofServer.reverse().slice(0, limit);
  }

  async end(ends: readonly MoveEnd[]): Promise<void> {
    for (const { id, state, fault } of ends) {
      const move = this.#moves.get(id);
      if (move && isWaiting(move)) this.#moves.set(id, { ...move, state, fault, updatedAtMs: this.#clock.now() });
    }
  }

  async staleMoves(untouchedMs: number, limit: number): Promise<readonly MoveRecord[]> {
    const nowMs = this.#clock.now();
    const stale = this.#all()
      .filter((one) => isWaiting(one) && one.updatedAtMs <= nowMs - untouchedMs)
      .sort((some, other) => some.updatedAtMs - other.updatedAtMs)
      .slice(0, limit);
    for (const one of stale) this.#moves.set(one.request.id, { ...one, updatedAtMs: nowMs });
    return stale;
  }

  /** All that were ever accepted, of all servers: for those who audit. */
  all(): readonly MoveRecord[] {
    return this.#all();
  }

  #all(): MoveRecord[] {
    return [...this.#moves.values()];
  }
}

const isWaiting = ({ state }: MoveRecord): boolean => state === "accepted";
