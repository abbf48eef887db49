import type { MoveEnd, MoveRecord, MoveStore } from "../../core/cell/move-store.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";

/** What a scheduler reads and writes of accepted moves, single calls that come together as one batch. */
export class MoveWrites {
  readonly #reads: Batcher<string, MoveRecord | null>;
  readonly #ends: Batcher<MoveEnd, void>;

  constructor(store: Pick<MoveStore, "moves" | "end">, batchMax: number) {
    this.#reads = new Batcher({
      run: async (ids) => {
        const records = await store.moves([...new Set(ids)]);
        const byId = new Map(records.map((record) => [record.request.id, record]));
        return ids.map((id) => byId.get(id) ?? null);
      },
      maxItems: batchMax,
    });
    this.#ends = new Batcher({
      run: async (ends) => {
        await store.end([...new Map(ends.map((end) => [end.id, end])).values()]);
        return ends.map((): void => undefined);
      },
      maxItems: batchMax,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  /** Null: unknown. */
  read(id: string): Promise<MoveRecord | null> {
    return this.#reads.submit(id);
  }

  end(end: MoveEnd): Promise<void> {
    return this.#ends.submit(end);
  }
}
