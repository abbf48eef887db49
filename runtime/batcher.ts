/** As many items wait as may: the caller has to slow down, or there have to be more processes. */
export class QueueFullError extends Error {
  constructor(maxQueued: number) {
    super(`more than ${maxQueued} items wait for a batch; slow down or add processes`);
    this.name = "QueueFullError";
  }
}

/**
 * How far apart the batches of a step that commits start at least, in milliseconds. A commit costs the machine far more than a row in it; some
 * milliseconds between two let a few more rows in, and a caller that comes alone still never waits.
 */
export const COMMIT_SPACING_MS = 10;
/**
 * … and farther while the other side is slow: so many times as long as the last batch took, within a bound. Steps share the database
 * and its machine with a dozen others, so each may keep it busy for a tenth of the time; beyond that, batches grow instead.
 */
const SPACING_PER_DURATION = 10;
const SPACING_MS_MAX = 150;

/**
 * Group commit: items that arrive while a batch is on its way go together in the next one, so that the batch size follows
 * the load and an idle caller never waits.
 *
 * Three modes: idle (the next item starts a batch at the end of this turn of the event loop), spaced (the last batch started less
 * than `spacingMs` ago: items gather until then, or until they fill a batch) and busy (`concurrency` batches are out: items
 * queue). A batch whose `run` rejects rejects all of its items; nothing is retried here.
 */
export class Batcher<Item, Result> {
  #queue: { item: Item; resolve: (result: Result) => void; reject: (error: unknown) => void }[] = [];
  #running = 0;
  #scheduled = false;
  readonly #run: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #maxItems: number;
  readonly #concurrency: number;
  readonly #maxQueued: number;
  readonly #spacingMs: number;
  readonly #besideItemsMin: number;
  #lastStartMs = Number.NEGATIVE_INFINITY;
  #lastTookMs = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: {
    readonly run: (items: readonly Item[]) => Promise<readonly Result[]>;
    /** Most items of one batch. */
    readonly maxItems: number;
    /** Most batches out at a time; 1 unless given. */
    readonly concurrency?: number;
    /** Items that may wait; one more is refused. 100,000 unless given. */
    readonly maxQueued?: number;
    /** Least time between the starts of two batches that are not full, in milliseconds; none unless given. */
    readonly spacingMs?: number;
    /** Fewest items for which a batch starts while another one is out; they wait for its end else. 1 unless given. */
    readonly besideItemsMin?: number;
  }) {
    this.#run = options.run;
    this.#maxItems = options.maxItems;
    this.#concurrency = options.concurrency ?? 1;
    this.#maxQueued = options.maxQueued ?? 100_000;
    this.#spacingMs = options.spacingMs ?? 0;
    this.#besideItemsMin = options.besideItemsMin ?? 1;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** Resolves with the item's own answer. Rejects when the batch failed, or when too many items wait already. */
  submit(item: Item): Promise<Result> {
    if (this.#queue.length >= this.#maxQueued) {
      return Promise.reject(new QueueFullError(this.#maxQueued));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#running >= this.#concurrency || this.#queue.length === 0) return;
    if (this.#running > 0 && this.#queue.length < this.#besideItemsMin) return;
    const waitMs = this.#queue.length >= this.#maxItems ? 0 : this.#lastStartMs + this.#spacing() - performance.now();
    if (waitMs > 0) {
      this.#timer ??= setTimeout(() => {
        this.#timer = null;
        this.#schedule();
      }, waitMs);
      return;
    }
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#flush();
      this.#schedule();
    });
  }

  #spacing(): number {
    if (this.#spacingMs === 0) return 0;
    return Math.max(this.#spacingMs, Math.min(SPACING_MS_MAX, this.#lastTookMs * SPACING_PER_DURATION));
  }

  async #flush(): Promise<void> {
    const batch = this.#queue.splice(0, this.#maxItems);
    if (batch.length === 0) return;
    const startMs = performance.now();
    this.#lastStartMs = startMs;
    this.#running += 1;
    try {
      const results = await this.#run(batch.map((entry) => entry.item));
      if (results.length !== batch.length)
        throw new Error(`a batch of ${batch.length} was answered with ${results.length} results`);
      for (const [index, entry] of batch.entries()) entry.resolve(results[index] as Result);
    } catch (error) {
      for (const entry of batch) entry.reject(error);
    } finally {
      this.#lastTookMs = performance.now() - startMs;
      this.#running -= 1;
      this.#schedule();
    }
  }
}
