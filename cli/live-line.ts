import { everyMs, type ProgressOutput, showLine } from "./progress-line.ts";

/** Shows the state of something while it runs, now and then; more often on a terminal. */
export class LiveLine {
  readonly #output: ProgressOutput;
  readonly #lineOf: (seconds: number, withBar: boolean) => string;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | null = null;
  #startedMs = 0;

  /** `lineOf`: the state after so many seconds. `now`: in milliseconds. */
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
