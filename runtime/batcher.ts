import { BatchPace } from "./batch-pace.ts";

/** The queue is full: the caller has to slow down, or more processes are needed. */
export class QueueFullError extends Error {
  constructor(maxQueued: number) {
    super(`more than ${maxQueued} items wait for a batch; slow down or add processes`);
    this.name = "QueueFullError";
  }
}

/**
 * Minimum spacing between the starts of two batches of a step that commits, in milliseconds, while the database is busy. A commit costs the
 * database machine far more than one more row in it, so a few milliseconds between two commits let more rows share one.
 */
export const COMMIT_SPACING_MS = 10;
/**
 * Maximum spacing by default, in milliseconds. With more than this the steps of a boot wait while the machine has time to spare, and with less the batches are so
 * small that their commits take that time. With 60 ms, a cloud under full load made the most boots a second (`npm run bench -- boots`).
 */
const SPACING_MS_MAX = 60;
/**
 * Only for this long after an item met another one that had not been answered may batches be spaced. A caller that makes one call after the other
 * meets no other items, so spacing would only delay it: with a busy database, a boot with nothing else under way would wait at each of its steps.
 */
const COMPANY_MS = 1_000;
/** A wait is shortened only by more than this many milliseconds, since each item may shorten it. */
const DUE_MS = 1;

/**
 * Group commit: items that arrive while a batch is under way go together in the next one, so that the batch size follows the load and an
 * idle caller never waits.
 *
 * The batcher has three modes. Idle: the next item starts a batch at the end of this turn of the event loop. Spaced: batches take longer than
 * they would if the database had nothing else to do, the last one started less than the spacing ago, and items have met in this batcher
 * lately, so they gather until then, or until they fill a batch. Busy: `concurrency` batches are under way and items queue. A batch whose
 * `run` rejects rejects all of its items; nothing is retried here.
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
  readonly #pace: BatchPace;
  readonly #besideItemsMin: number;
  #lastStartMs = Number.NEGATIVE_INFINITY;
  /** When an item last came while another one was unanswered. */
  #companyMs = Number.NEGATIVE_INFINITY;
  /** The end of the wait for the spacing. */
  #timer: NodeJS.Timeout | null = null;
  #dueMs = Number.POSITIVE_INFINITY;

  constructor(options: {
    readonly run: (items: readonly Item[]) => Promise<readonly Result[]>;
    /** Maximum number of items in one batch. */
    readonly maxItems: number;
    /** Maximum number of batches under way at a time; 1 by default. */
    readonly concurrency?: number;
    /** Maximum number of items that may wait; one more is refused. 100,000 by default. */
    readonly maxQueued?: number;
    /** Minimum time between the starts of two batches that are not full, in milliseconds, while batches take long; 0 by default. */
    readonly spacingMs?: number;
    /** Bound of the spacing while the database is slow, in milliseconds; 60 by default. Equal to `spacingMs`: the spacing never grows. */
    readonly spacingMsMax?: number;
    /**
     * Minimum number of items for which a batch starts while another one is under way; fewer items wait until that one ends. 1 by default.
     */
    readonly besideItemsMin?: number;
  }) {
    this.#run = options.run;
    this.#maxItems = options.maxItems;
    this.#concurrency = options.concurrency ?? 1;
    this.#maxQueued = options.maxQueued ?? 100_000;
    this.#spacingMs = options.spacingMs ?? 0;
    this.#pace = new BatchPace(this.#spacingMs, options.spacingMsMax ?? SPACING_MS_MAX);
    this.#besideItemsMin = options.besideItemsMin ?? 1;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** Resolves with the answer for this item. Rejects when the batch failed, or when too many items wait already. */
  submit(item: Item): Promise<Result> {
    if (this.#queue.length >= this.#maxQueued) {
      return Promise.reject(new QueueFullError(this.#maxQueued));
    }
    if (this.#spacingMs > 0 && (this.#queue.length > 0 || this.#running > 0)) this.#companyMs = performance.now();
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#running >= this.#concurrency || this.#queue.length === 0) return;
    if (this.#running > 0 && this.#queue.length < this.#besideItemsMin) return;
    const waitMs = this.#queue.length >= this.#maxItems ? 0 : this.#spacingLeft();
    if (waitMs > 0) {
      this.#scheduleAfter(waitMs);
      return;
    }
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#flush();
      this.#schedule();
    });
  }

  /** Schedules again after this time. The spacing may have become shorter since a wait began, which then ends sooner. */
  #scheduleAfter(waitMs: number): void {
    const dueMs = performance.now() + waitMs;
    if (this.#timer !== null && this.#dueMs <= dueMs + DUE_MS) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#dueMs = dueMs;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#schedule();
    }, waitMs);
  }

  /** Milliseconds until the next batch may start; not positive when it may start now. */
  #spacingLeft(): number {
    if (this.#spacingMs === 0) return 0;
    const now = performance.now();
    if (now - this.#companyMs > COMPANY_MS) return 0;
    return this.#lastStartMs + this.#pace.spacingMsAt(now) - now;
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
      const now = performance.now();
      this.#pace.took(now - startMs, now, batch.length);
      for (const [index, entry] of batch.entries()) entry.resolve(results[index] as Result);
    } catch (error) {
      for (const entry of batch) entry.reject(error);
    } finally {
      this.#running -= 1;
      this.#schedule();
    }
  }
}
