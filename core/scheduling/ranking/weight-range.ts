/** Number of buckets of a range. A bucket's number fits one byte, so each host costs one byte. */
const BUCKETS = 256;
/** Number of buckets between the lowest and the highest weight at the time when the range was taken. */
const WITHIN = 240;
/** Number of buckets below the lowest weight, and also above the highest. */
const BELOW = 8;
/** Number of buckets by which an end may move before the range must be taken again. */
const DRIFT_MAX = 4;
/** Bucket of the hosts that are not above a given lowest weight. They normalise to 0 whatever the others weigh. */
const AT_LOWEST = 0;

/** How far an end of the range may move, as a part of the range. */
export const RANGE_DRIFT_MAX = (DRIFT_MAX + 1) / WITHIN;

/**
 * The range of one weigher's weights over all feasible hosts. It is taken once and kept, so that one host's weight can be normalised
 * without reading the others. A histogram shows when the true range has moved away from it.
 *
 * - a point: all hosts weigh the same, and no lowest weight is given. No host is counted. A host with another weight (`breaks`) requires a
 *   new range
 * - flat: no host is above the given lowest weight. It may be widened to any span, since no host's weight changes
 * - wide: every other range. When it is taken again, the weights of the hosts above the lowest weight change, or of all hosts when none is
 *   given
 *
 * Normalising is affine. So a range that is off by a factor changes no weigher's own order, but only how much the weigher counts against
 * the others. docs/scheduling-at-scale.md gives the bound.
 */
export class WeightRange {
  /** By bucket: number of hosts. It is empty until the range is taken, since most weighers do not apply to most requests. */
  #counts = new Int32Array(0);
  /** The lowest weight that the weigher gives: the range begins here whatever the weights are. */
  readonly #fixedLowest: number | undefined;
  #least = 0;
  #span = 0;
  #hosts = 0;
  /** No bucket above `top` or below `bottom` has hosts. These two buckets themselves may have become empty. */
  #top = -1;
  #bottom = BUCKETS;
  #topTaken = -1;
  #bottomTaken = BUCKETS;

  constructor(fixedLowest: number | undefined) {
    this.#fixedLowest = fixedLowest;
  }

  /** Takes the range. Unless it is a point, call `add` for each host and then `settle`. */
  take(least: number, most: number): void {
    this.#least = this.#fixedLowest ?? least;
    this.#span = Math.max(0, most - this.#least);
    if (this.#counts.length === 0) this.#counts = new Int32Array(BUCKETS);
    else this.#counts.fill(0);
    this.#hosts = 0;
    this.#top = -1;
    this.#bottom = BUCKETS;
  }

  /** Marks the current counts as those from which the range was taken. */
  settle(): void {
    this.#trim();
    this.#topTaken = this.#top;
    this.#bottomTaken = this.#bottom;
  }

  get isPoint(): boolean {
    return this.#span === 0 && this.#fixedLowest === undefined;
  }

  /** For a point: whether the weight differs from it. */
  breaks(raw: number): boolean {
    return raw !== this.#least;
  }

  get isFlat(): boolean {
    if (this.#fixedLowest === undefined) return false;
    this.#trim();
    return this.#top <= AT_LOWEST;
  }

  /** Extends a flat range up to `most`. The host with that weight must still be counted. */
  widen(most: number): void {
    this.#span = Math.max(0, most - this.#least);
    this.#topTaken = this.#span > 0 ? this.#bucketOf(most) : AT_LOWEST;
  }

  /** A number from 0 to 1 for a weight within the range. When all weights are equal it is 0, as in Nova. */
  normalise(raw: number): number {
    if (this.#span === 0) return 0;
    const above = raw - this.#least;
    return this.#fixedLowest === undefined || above > 0 ? above / this.#span : 0;
  }

  /** Counts a host and returns its bucket, which `drop` takes later. */
  add(raw: number): number {
    const bucket = this.#bucketOf(raw);
    this.#counts[bucket] = this.#counts[bucket]! + 1;
    this.#hosts += 1;
    if (bucket > this.#top) this.#top = bucket;
    if (bucket < this.#bottom) this.#bottom = bucket;
    return bucket;
  }

  drop(bucket: number): void {
    this.#counts[bucket] = this.#counts[bucket]! - 1;
    this.#hosts -= 1;
  }

  /** True when an end of the true range has moved by more than RANGE_DRIFT_MAX. */
  get drifted(): boolean {
    this.#trim();
    if (this.#top < 0) return false;
    if (Math.abs(this.#top - this.#topTaken) > DRIFT_MAX) return true;
    return this.#fixedLowest === undefined && Math.abs(this.#bottom - this.#bottomTaken) > DRIFT_MAX;
  }

  /** Number of hosts whose weights change when the range is taken again. */
  get compared(): number {
    return this.#fixedLowest === undefined ? this.#hosts : this.#hosts - this.#counts[AT_LOWEST]!;
  }

  /** Whether the hosts of a bucket are among `compared`. */
  compares(bucket: number): boolean {
    return this.#fixedLowest === undefined || bucket !== AT_LOWEST;
  }

  #trim(): void {
    if (this.#hosts === 0) {
      this.#top = -1;
      this.#bottom = BUCKETS;
      return;
    }
    while (this.#counts[this.#top] === 0) this.#top -= 1;
    while (this.#counts[this.#bottom] === 0) this.#bottom += 1;
  }

  #bucketOf(raw: number): number {
    const above = raw - this.#least;
    if (this.#fixedLowest !== undefined && !(above > 0)) return AT_LOWEST;
    if (this.#span === 0) return above > 0 ? BUCKETS - 1 : above < 0 ? 0 : BELOW;
    const bucket = BELOW + Math.floor((above / this.#span) * WITHIN);
    return Math.max(0, Math.min(BUCKETS - 1, bucket));
  }
}
