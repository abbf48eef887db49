import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";

const BATCH_MAX = 500;
/** Maximum number of batches of one kind in flight. The next batch fills while the previous ones are written. */
const BATCHES_OUT_MAX = 2;
const ITEMS_QUEUED_MAX = 200_000;

/** Combines the calls of many callers into one call of a store. A caller whose batch failed can repeat its call alone. */
export class SharedStep<Item, Outcome> {
  readonly #together: Batcher<Item, Outcome>;
  readonly #alone: Batcher<Item, Outcome>;

  constructor(run: (items: readonly Item[]) => Promise<readonly Outcome[]>) {
    this.#together = batcherOf(run);
    this.#alone = batcherOf(run, 1);
  }

  submit(item: Item, alone: boolean): Promise<Outcome> {
    return (alone ? this.#alone : this.#together).submit(item);
  }
}

/** Creates a batcher with this service's limits. */
export function batcherOf<Item, Outcome>(
  run: (items: readonly Item[]) => Promise<readonly Outcome[]>,
  maxItems = BATCH_MAX,
): Batcher<Item, Outcome> {
  const limits = { maxItems, concurrency: BATCHES_OUT_MAX, maxQueued: ITEMS_QUEUED_MAX };
  return new Batcher({ run, ...limits, spacingMs: maxItems === 1 ? 0 : COMMIT_SPACING_MS });
}
