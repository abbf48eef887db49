import { everyMs, type ProgressOutput, showLine } from "./progress-line.ts";

/** Shows the state of something that tells by itself that it got on; no more often than a `LiveLine` does. */
export class DueLine {
  readonly #output: ProgressOutput;
  #shownMs: number | null = null;

  constructor(output: ProgressOutput) {
    this.#output = output;
  }

  /** `lineOf`: called if it is time. `nowMs`: by any clock, the same in each call. */
  show(nowMs: number, lineOf: (withBar: boolean) => string): void {
    if (this.#shownMs !== null && nowMs - this.#shownMs < everyMs(this.#output)) return;
    this.#shownMs = nowMs;
    showLine(this.#output, lineOf(this.#output.isTTY ?? false));
  }

  /** Shows the last state, if one is given. What comes next begins a line of its own. */
  end(last?: (withBar: boolean) => string): void {
    if (last) showLine(this.#output, last(this.#output.isTTY ?? false));
    if (this.#output.isTTY && (last || this.#shownMs !== null)) this.#output.write("\n");
  }
}
