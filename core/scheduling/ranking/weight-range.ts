/** Buckets of a range: of one byte, so that a host costs one. */
const BUCKETS = 256;
/** Buckets between the lowest and the highest weight of the time when the range was taken … */
const WITHIN = 240;
/** … and so many below it (and above). */
const BELOW = 8;
/** So many buckets the ends may move before the range has to be taken anew. */
const DRIFT_MAX = 4;

/** How far an end of the range may move, as a part of it. */
export const RANGE_DRIFT_MAX = (DRIFT_MAX + 1) / WITHIN;

/**
 * The range in which one weigher's weights of all feasible hosts lie, taken once and kept, so that one host's weight can be
 * normalised without looking at the others; and a histogram that tells when the true range has moved away from it.
 *
 * Normalising is affine, so a range that is off by a factor changes no weigher's own order, only how much it counts against the
 * others: see docs/scheduling-at-scale.md for the bound.
 */
export class WeightRange {
  readonly #counts = new Int32Array(BUCKETS);
  /** Given by the weigher: the range begins here whatever the weights are. */
  readonly #fixedLowest: number | undefined;
  #least = 0;
  #span = 0;
  #top = -1;
  #bottom = BUCKETS;
  #topTaken = -1;
  #bottomTaken = BUCKETS;

  constructor(fixedLowest: number | undefined) {
    this.#fixedLowest = fixedLowest;
  }

  /** Takes the range; the hosts are then counted one by one (`add`), and at the end `settle`. */
  take(least: number, most: number): void {
    this.#least = this.#fixedLowest ?? least;
    this.#span = Math.max(0, most - this.#least);
    this.#counts.fill(0);
    this.#top = -1;
    this.#bottom = BUCKETS;
  }

  /** What is counted now is what the range was taken of. */
  settle(): void {
    this.#topTaken = this.#top;
    this.#bottomTaken = this.#bottom;
  }

  /** From 0 to 1 for a weight within the range. All weights are alike: 0, as Nova has it. */
  normalise(raw: number): number {
    if (this.#span === 0) return 0;
    const above = raw - this.#least;
    return this.#fixedLowest === undefined || above > 0 ? above / this.#span : 0;
  }

  /** Counts a host; returns its bucket, to be given back to `drop`. */
  add(raw: number): number {
    const bucket = this.#bucketOf(raw);
    this.#counts[bucket] = this.#counts[bucket]! + 1;
    if (bucket > this.#top) this.#top = bucket;
    if (bucket < this.#bottom) this.#bottom = bucket;
    return bucket;
  }

  drop(bucket: number): void {
    this.#counts[bucket] = this.#counts[bucket]! - 1;
    while (this.#top >= 0 && this.#counts[this.#top] === 0) this.#top -= 1;
    if (this.#top < 0) this.#bottom = BUCKETS;
    else while (this.#counts[this.#bottom] === 0) this.#bottom += 1;
  }

  /** An end of the true range has moved by more than RANGE_DRIFT_MAX. */
  get drifted(): boolean {
    if (this.#top < 0) return false;
    if (Math.abs(this.#top - this.#topTaken) > DRIFT_MAX) return true;
    return this.#fixedLowest === undefined && Math.abs(this.#bottom - this.#bottomTaken) > DRIFT_MAX;
  }

  /** All weighed the same when the range was taken, and now they do not: nothing is told apart until it is taken anew. */
  get isPoint(): boolean {
    return this.#span === 0 && this.drifted;
  }

  #bucketOf(raw: number): number {
    const above = raw - this.#least;
    if (this.#span === 0) return above === 0 ? BELOW : above > 0 ? BUCKETS - 1 : 0;
    const bucket = BELOW + Math.floor((above / this.#span) * WITHIN);
    return Math.max(0, Math.min(BUCKETS - 1, bucket));
  }
}
