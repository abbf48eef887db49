/** Buckets of a range: of one byte, so that a host costs one. */
const BUCKETS = 256;
/** Buckets between the lowest and the highest weight of the time when the range was taken … */
const WITHIN = 240;
/** … and so many below it (and above). */
const BELOW = 8;
/** So many buckets the ends may move before the range has to be taken anew. */
const DRIFT_MAX = 4;
/** Of those that are not above a lowest weight that is given: they normalise to 0 whatever the others weigh. */
const AT_LOWEST = 0;

/** How far an end of the range may move, as a part of it. */
export const RANGE_DRIFT_MAX = (DRIFT_MAX + 1) / WITHIN;

/**
 * The range in which one weigher's weights of all feasible hosts lie, taken once and kept, so that one host's weight can be
 * normalised without looking at the others; and a histogram that tells when the true range has moved away from it.
 *
 * - a point: all hosts weigh the same, and no lowest weight is given. Nobody is counted; a host that weighs anything else
 *   (`breaks`) has it taken anew
 * - flat: no host is above the lowest weight, which is given. It may be widened to any span: nobody's weight changes
 * - wide: else. The hosts above the lowest weight, or all when it is not given, change their weights when it is taken anew
 *
 * Normalising is affine, so a range that is off by a factor changes no weigher's own order, only how much it counts against the
 * others: see docs/scheduling-at-scale.md for the bound.
 */
export class WeightRange {
  /** By bucket; none before it is taken, as most weighers have nothing to say of most requests. */
  #counts = new Int32Array(0);
  /** Given by the weigher: the range begins here whatever the weights are. */
  readonly #fixedLowest: number | undefined;
  #least = 0;
  #span = 0;
  #hosts = 0;
  /** No bucket above `top` or below `bottom` has hosts; those two may have lost theirs. */
  #top = -1;
  #bottom = BUCKETS;
  #topTaken = -1;
  #bottomTaken = BUCKETS;

  constructor(fixedLowest: number | undefined) {
    this.#fixedLowest = fixedLowest;
  }

  /** Takes the range; unless it is a point the hosts are then counted one by one (`add`), and at the end `settle`. */
  take(least: number, most: number): void {
    this.#least = this.#fixedLowest ?? least;
    this.#span = Math.max(0, most - this.#least);
    if (this.#counts.length === 0) this.#counts = new Int32Array(BUCKETS);
    else this.#counts.fill(0);
    this.#hosts = 0;
    this.#top = -1;
    this.#bottom = BUCKETS;
  }

  /** What is counted now is what the range was taken of. */
  settle(): void {
    this.#trim();
    this.#topTaken = this.#top;
    this.#bottomTaken = this.#bottom;
  }

  get isPoint(): boolean {
    return this.#span === 0 && this.#fixedLowest === undefined;
  }

  /** Of a point: the weight is another one. */
  breaks(raw: number): boolean {
    return raw !== this.#least;
  }

  get isFlat(): boolean {
    if (this.#fixedLowest === undefined) return false;
    this.#trim();
    return this.#top <= AT_LOWEST;
  }

  /** Of a flat range: from now on it reaches up to `most`. The host that weighs so much is yet to be counted. */
  widen(most: number): void {
    this.#span = Math.max(0, most - this.#least);
    this.#topTaken = this.#span > 0 ? this.#bucketOf(most) : AT_LOWEST;
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
    this.#hosts += 1;
    if (bucket > this.#top) this.#top = bucket;
    if (bucket < this.#bottom) this.#bottom = bucket;
    return bucket;
  }

  drop(bucket: number): void {
    this.#counts[bucket] = this.#counts[bucket]! - 1;
    this.#hosts -= 1;
  }

  /** An end of the true range has moved by more than RANGE_DRIFT_MAX. */
  get drifted(): boolean {
    this.#trim();
    if (this.#top < 0) return false;
    if (Math.abs(this.#top - this.#topTaken) > DRIFT_MAX) return true;
    return this.#fixedLowest === undefined && Math.abs(this.#bottom - this.#bottomTaken) > DRIFT_MAX;
  }

  /** Hosts whose weights change when the range is taken anew. */
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
