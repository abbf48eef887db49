import { everyMs, type ProgressOutput, showLine } from "./progress-line.ts";

/** Shows the state of running work at intervals, which are shorter on a terminal. */
export class LiveLine {
  readonly #output: ProgressOutput;
  readonly #lineOf: (seconds: number, withBar: boolean) => string;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | null = null;
  #startedMs = 0;

  /** `lineOf` returns the state after the given number of seconds. `now` is in milliseconds. */
  constructor(output: ProgressOutput, lineOf: (seconds: number, withBar: boolean) => string, now: () => number) {
    this.#output = output;
    this.#lineOf = lineOf;
    this.#now = now;
  }

  start(): void {
    this.#startedMs = this.#now();
    this.#timer = setInterval(() => this.#show(), everyMs(this.#output));
  }

  /** Shows the last state. */
  stop(): void {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
    this.#show();
    if (this.#output.isTTY) this.#output.write("\n");
  }

  #show(): void {
    const seconds = (this.#now() - this.#startedMs) / 1_000;
    showLine(this.#output, this.#lineOf(seconds, this.#output.isTTY ?? false));
  }
}
