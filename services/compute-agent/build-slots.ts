import { Fifo } from "../../runtime/fifo.ts";

/** How many builds may wait for a slot on one host. Further builds are refused, because another host has a free slot sooner. */
export const WAITING_BUILDS_MAX = 1_000;

/** Limits the builds that run at a time on one host (Nova's max_concurrent_builds). The others wait in order. */
export class BuildSlots {
  readonly #limit: number;
  readonly #waiting = new Fifo<() => void>();
  #running = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get full(): boolean {
    return this.#waiting.size >= WAITING_BUILDS_MAX;
  }

  /** Resolves when it is this build's turn. The caller must call `leave` afterwards. */
  enter(): Promise<void> {
    if (this.#running < this.#limit) {
      this.#running += 1;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
  }
}
