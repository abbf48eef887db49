import { Fifo } from "../../runtime/fifo.ts";

/** Builds that may wait for a slot on one host; one more is refused, another host has room sooner. */
export const WAITING_BUILDS_MAX = 1_000;

/** How many builds run at a time on one host (Nova's max_concurrent_builds); the others wait in order. */
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

  /** Resolves when it is this build's turn; `leave` must follow. */
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
