/**
 * With a busy database, the spacing is this many times what a batch takes, within a bound. Steps share the database and its machine with a
 * dozen others, so each may keep it busy for a tenth of the time; beyond that, batches grow instead.
 */
const SPACING_PER_DURATION = 10;
/**
 * A database is calm while batches take up to this many times as long as the fastest one of the last minutes, and a little more. Nothing is
 * gained by waiting then: the machine has time to spare, and callers do not.
 */
const CALM_FACTOR = 2;
const CALM_MS = 1;
/**
 * Under load, a database whose fastest batch takes longer than this many milliseconds is measured by this time instead. In a process that starts under
 * load, or when the load has lasted for minutes, the fastest batch tells only how busy the database was all the time: it would count as calm,
 * its batches would never be spaced out, and so it would stay as busy as it is.
 */
const FASTEST_MS_MAX = 10;
/**
 * There is load when at least this many items come in the time that a batch takes. With fewer, a database whose batches all take long is slow, or far away, and
 * not busy: to space them out would save few commits, and make callers wait at each step for good.
 */
const COMING_MIN = 2;
/** How long the fastest batch is remembered, in milliseconds: at least one such time, at most two while batches come. */
const REMEMBERED_MS = 60_000;
/** After this many milliseconds without a batch, nothing is known of how busy the database is, so the next one need not wait. */
const STALE_MS = 2_000;
/** How much the last batch counts in the average of what batches take. */
const LAST_SHARE = 0.3;
/** The same for how many items come in what time, which differs more from batch to batch. */
const LAST_RATE_SHARE = 0.1;

/**
 * How far apart the batches of one step should start, from what they take. A lone batch costs its database little, and a caller that waits
 * for company in it waits for nothing, as long as the database has time to spare. When it has none, batches take longer than the fastest ones
 * did, and then each further row that shares a commit makes everybody faster. So the spacing is 0 in a cloud that serves some dozens of boots
 * a second, and grows on its own with the load until commits leave the machine room for the rest.
 * Smaller batches are faster ones, so that the fastest batch of a busy minute still tells what the database could do, unless it is busy all the time.
 */
export class BatchPace {
  readonly #leastMs: number;
  readonly #mostMs: number;
  /** What batches take, the last ones counting most. Null until two of them came without a pause. */
  #tookMs: number | null = null;
  /** What the last batch took. */
  #lastTookMs = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  /** How many items a batch has, and how long after the batch before it ends, on average since the last pause. */
  #items = 0;
  #intervalMs = 0;
  /** The fastest batch since `#fastestFromMs`, and of the time before. */
  #fastestMs = Number.POSITIVE_INFINITY;
  #fastestBeforeMs = Number.POSITIVE_INFINITY;
  #fastestFromMs = Number.NEGATIVE_INFINITY;

  /** The spacing is 0 or lies between these two, in milliseconds. */
  constructor(leastMs: number, mostMs: number) {
    this.#leastMs = leastMs;
    this.#mostMs = mostMs;
  }

  /**
   * Records that a batch of so many items took this long. `nowMs` is the time of a clock that never goes back. As long as batches are not spaced out, the shorter
   * time of two in a row counts: a single slow one says little of how busy the database is, as it may have opened a connection or have met a checkpoint. With a busy
   * database each one counts as it is, since the shorter ones alone would make the database seem less busy than it is.
   */
  took(tookMs: number, nowMs: number, items: number): void {
    const isAfterPause = nowMs - this.#lastMs > STALE_MS;
    const countedMs = this.spacingMsAt(nowMs) > 0 ? tookMs : Math.min(tookMs, this.#lastTookMs);
    const before = this.#tookMs;
    if (isAfterPause) this.#tookMs = null;
    else {
      this.#tookMs = before === null ? countedMs : before + (countedMs - before) * LAST_SHARE;
      const rateShare = before === null ? 1 : LAST_RATE_SHARE;
      this.#items += (items - this.#items) * rateShare;
      this.#intervalMs += (nowMs - this.#lastMs - this.#intervalMs) * rateShare;
    }
    this.#lastTookMs = tookMs;
    this.#lastMs = nowMs;
    if (nowMs - this.#fastestFromMs > REMEMBERED_MS) {
      this.#fastestBeforeMs = this.#fastestMs;
      this.#fastestMs = tookMs;
      this.#fastestFromMs = nowMs;
    } else this.#fastestMs = Math.min(this.#fastestMs, tookMs);
  }

  /** Minimum time between the starts of two batches, in milliseconds, at this time of the same clock. */
  spacingMsAt(nowMs: number): number {
    if (this.#tookMs === null || nowMs - this.#lastMs > STALE_MS) return 0;
    const fastestMs = Math.min(this.#fastestMs, this.#fastestBeforeMs);
    const isUnderLoad = this.#items * this.#tookMs >= COMING_MIN * this.#intervalMs;
    const calmMs = CALM_MS + CALM_FACTOR * (isUnderLoad ? Math.min(fastestMs, FASTEST_MS_MAX) : fastestMs);
    if (this.#tookMs <= calmMs) return 0;
    // Between a calm database and a busy one, which takes twice as long, the spacing grows from nothing, so that it can settle anywhere between.
    const busy = Math.min(1, this.#tookMs / calmMs - 1);
    return Math.min(this.#mostMs, Math.max(this.#leastMs, this.#tookMs * SPACING_PER_DURATION * busy));
  }
}
