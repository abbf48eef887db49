import { Transform } from "node:stream";
import type { Clock, Timer } from "./clock.ts";

/** Passes bytes on, and breaks off with an error when none have moved for `idleMs`: the sender is silent, or the reader does not read. */
export class IdleLimit extends Transform {
  readonly #idleMs: number;
  readonly #clock: Pick<Clock, "setTimer">;
  #timer: Timer | null = null;

  constructor(idleMs: number, clock: Pick<Clock, "setTimer">) {
    super();
    this.#idleMs = idleMs;
    this.#clock = clock;
    this.#restart();
  }

  override _transform(chunk: Buffer, _encoding: string, done: (error: Error | null, chunk?: Buffer) => void): void {
    this.#restart();
    done(null, chunk);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#timer?.cancel();
    done(error);
  }

  #restart(): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(this.#idleMs, () =>
      this.destroy(new Error(`nothing moved for ${this.#idleMs} ms`)),
    );
  }
}
