/** Sum and number of the values of one point, for the mean. */
interface Point {
  count: number;
  sum: number;
}

/**
 * The allocated share of all GPUs (in percent) when tasks that request 0, 1, 2, … percent of them have arrived. Each value is the mean over
 * the arrivals that round to the point, computed like the published figures. All values are in percent with two decimals.
 */
export class AllocationPoints {
  readonly #capacityMilli: number;
  readonly #points: Point[] = [];
  #arrivedMilli = 0;
  #allocatedMilli = 0;

  constructor(capacityMilli: number) {
    this.#capacityMilli = capacityMilli;
  }

  /** Adds the arrival of a task, which was placed or not. */
  add(gpuMilli: number, placed: boolean): void {
    this.#arrivedMilli += gpuMilli;
    if (placed) this.#allocatedMilli += gpuMilli;
    const at = roundHalfEven((100 * this.#arrivedMilli) / this.#capacityMilli);
    this.#points[at] ??= { count: 0, sum: 0 };
    const point = this.#points[at]!;
    point.count += 1;
    point.sum += round2((100 * this.#allocatedMilli) / this.#capacityMilli);
  }

  /** The values by point, from 0 to `last`. A point without arrivals has the mean of its neighbours, or null if they have none either. */
  upTo(last: number): (number | null)[] {
    return Array.from({ length: last + 1 }, (_, at) => this.#at(at));
  }

  #at(at: number): number | null {
    const own = this.#points[at];
    const points = own ? [own] : [this.#points[at - 1], this.#points[at + 1]].filter((point) => point !== undefined);
    if (points.length === 0) return null;
    const sum = points.reduce((total, point) => total + point.sum, 0);
    return round2(sum / points.reduce((total, point) => total + point.count, 0));
  }
}

export function round2(value: number): number {
  return Math.round(value * 100) / 100;
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
