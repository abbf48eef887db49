import type { MoveEnd, MoveRecord, MoveStore } from "../../../core/stores/api/move-store.ts";
import { Batcher } from "../../../runtime/batcher.ts";
import { writeBatcher } from "../write-batcher.ts";

/** Reads and writes accepted moves. Single calls that are made at about the same time go to the store as one batch. */
export class MoveWrites {
  readonly #reads: Batcher<string, MoveRecord | null>;
  readonly #ends: Batcher<MoveEnd, void>;
  readonly #asks: Batcher<string, boolean>;
  readonly #giveUps: Batcher<{ readonly id: string; readonly fault: string }, boolean>;
  readonly #putOffs: Batcher<{ readonly id: string; readonly delayMs: number }, void>;

  constructor(store: Pick<MoveStore, "moves" | "end" | "markAsked" | "giveUp" | "putOff">, batchMax: number) {
    this.#reads = new Batcher({
      run: async (ids) => {
        const records = await store.moves([...new Set(ids)]);
        const byId = new Map(records.map((record) => [record.request.id, record]));
        return ids.map((id) => byId.get(id) ?? null);
      },
      maxItems: batchMax,
    });
    this.#ends = writeBatcher((ends) => store.end([...new Map(ends.map((end) => [end.id, end])).values()]), batchMax);
    this.#asks = new Batcher({
      run: async (ids) => {
        const asked = new Set(await store.markAsked([...new Set(ids)]));
        return ids.map((id) => asked.has(id));
      },
      maxItems: batchMax,
    });
    this.#giveUps = new Batcher({
      run: async (moves) => {
        const givenUp = new Set(await store.giveUp([...new Map(moves.map((move) => [move.id, move])).values()]));
        return moves.map(({ id }) => givenUp.has(id));
      },
      maxItems: batchMax,
    });
    this.#putOffs = writeBatcher((putOffs) => store.putOff(putOffs), batchMax);
  }

  /** Returns null when the move is unknown. */
  read(id: string): Promise<MoveRecord | null> {
    return this.#reads.submit(id);
  }

  end(end: MoveEnd): Promise<void> {
    return this.#ends.submit(end);
  }

  /** Records that the move's cell is about to be asked to begin it. Returns false when the move has ended. */
  markAsked(id: string): Promise<boolean> {
    return this.#asks.submit(id);
  }

  /** Refuses the move unless it has ended or its cell may have been asked to begin it. Returns whether the move was refused. */
  giveUp(id: string, fault: string): Promise<boolean> {
    return this.#giveUps.submit({ id, fault });
  }

  /** Records in the move's row that it must be tried again after a delay. */
  putOff(putOff: { readonly id: string; readonly delayMs: number }): Promise<void> {
    return this.#putOffs.submit(putOff);
  }
}
