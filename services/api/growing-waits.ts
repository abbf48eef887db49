import type { Clock } from "../../runtime/clock.ts";

/** Maximum number of things that wait. */
const WAITS_MAX = 10_000;

interface Wait {
  /** By the monotonic clock. */
  readonly untilMs: number;
  readonly ms: number;
}

/** Things that could not be done, by key. Each waits before it is tried again, and its wait doubles with each failure. */
export class GrowingWaits {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #msMax: number;
  readonly #waits = new Map<string, Wait>();

  constructor(clock: Pick<Clock, "monotonic">, options: { readonly msMax: number }) {
    this.#clock = clock;
    this.#msMax = options.msMax;
  }

  isWaiting(key: string): boolean {
    return this.#clock.monotonic() < (this.#waits.get(key)?.untilMs ?? Number.NEGATIVE_INFINITY);
  }

  /** Lets a thing wait: for twice its last wait, and at least for this time. A wait that ended longer ago than the longest wait takes no longer counts. */
  wait(key: string, atLeastMs: number): void {
    const nowMs = this.#clock.monotonic();
    const last = this.#waits.get(key);
    const lastMs = last !== undefined && last.untilMs >= nowMs - this.#msMax ? last.ms : 0;
    const ms = Math.min(this.#msMax, Math.max(atLeastMs, 2 * lastMs));
    // What another process has done leaves its wait here. Without its wait, a thing is only tried earlier.
    if (this.#waits.size >= WAITS_MAX && last === undefined) this.#waits.clear();
    this.#waits.set(key, { untilMs: nowMs + ms, ms });
  }

  /** Forgets the waits of a thing that is done. */
  end(key: string): void {
    this.#waits.delete(key);
  }
}
