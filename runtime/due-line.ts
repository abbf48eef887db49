import { everyMs, type ProgressOutput, showLine } from "./progress-line.ts";

/** Shows the state of work that reports its own progress, but no more often than a `LiveLine` does. */
export class DueLine {
  readonly #output: ProgressOutput;
  #shownMs: number | null = null;

  constructor(output: ProgressOutput) {
    this.#output = output;
  }

  /** Calls `lineOf` if a new line is due. `nowMs` may come from any clock, as long as it is the same one in each call. */
  show(nowMs: number, lineOf: (withBar: boolean) => string): void {
    if (this.#shownMs !== null && nowMs - this.#shownMs < everyMs(this.#output)) return;
    this.#shownMs = nowMs;
    showLine(this.#output, lineOf(this.#output.isTTY ?? false));
  }

  /** Shows the last state, if one is given, and ends the line, so that later output begins on a new one. */
  end(last?: (withBar: boolean) => string): void {
    if (last) showLine(this.#output, last(this.#output.isTTY ?? false));
    if (this.#output.isTTY && (last || this.#shownMs !== null)) this.#output.write("\n");
  }
}
