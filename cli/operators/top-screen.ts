import type { LiveCounts } from "../../services/api/dashboard/live-picture.ts";
import type { HeldPicture } from "../../services/api/dashboard/read-live-events.ts";

/** The time over which rates are computed. */
const RATE_MS = 5_000;

/** Draws the newest picture at each tick, with rates from the counts of the last ticks. */
export class TopScreen {
  /** The newest picture; null before the first one. */
  held: HeldPicture | null = null;
  readonly #draw: (held: HeldPicture, rates: LiveCounts | null) => void;
  #samples: { readonly atMs: number; readonly counts: LiveCounts }[] = [];

  constructor(draw: (held: HeldPicture, rates: LiveCounts | null) => void) {
    this.#draw = draw;
  }

  /** `nowMs` is of a clock that never jumps. */
  tick(nowMs: number): void {
    if (this.held === null) return;
    const { counts } = this.held.figures;
    this.#samples = [...this.#samples.filter(({ atMs }) => nowMs - atMs <= RATE_MS), { atMs: nowMs, counts }];
    this.#draw(this.held, this.#rates());
  }

  /** Null until there are two samples. Never negative, even after the api's counts began again at 0. */
  #rates(): LiveCounts | null {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (first === undefined || last === undefined || first === last) return null;
    const seconds = (last.atMs - first.atMs) / 1_000;
    const of = (name: keyof LiveCounts) => Math.max(0, last.counts[name] - first.counts[name]) / seconds;
    return {
      placed: of("placed"),
      hops: of("hops"),
      active: of("active"),
      failed: of("failed"),
      deleted: of("deleted"),
    };
  }
}
