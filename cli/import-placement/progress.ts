import type { Clock } from "../../runtime/clock.ts";
import { type ProgressOutput, shareParts, showLine, TERMINAL_EVERY_MS } from "../live-line.ts";

const BAR_WIDTH = 30;
const LINES_EVERY_MS = 5_000;

/** Shows how far an import is: one line that is written over on a terminal, a line now and then elsewhere. */
export class Progress {
  readonly #output: ProgressOutput;
  readonly #clock: Clock;
  readonly #rowsInAll: number;
  readonly #startedMs: number;
  #rows = 0;
  /** What was done before an interruption counts for the share, not for the rate. */
  #resumed = 0;
  #shownMs = Number.NEGATIVE_INFINITY;

  constructor(output: ProgressOutput, clock: Clock, rowsInAll: number) {
    this.#output = output;
    this.#clock = clock;
    this.#rowsInAll = rowsInAll;
    this.#startedMs = clock.monotonic();
  }

  resumeAt(rows: number): void {
    this.#rows = rows;
    this.#resumed = rows;
  }

  add(what: string, rows: number): void {
    this.#rows += rows;
    const now = this.#clock.monotonic();
    if (now - this.#shownMs < (this.#output.isTTY ? TERMINAL_EVERY_MS : LINES_EVERY_MS)) return;
    this.#shownMs = now;
    this.#show(what);
  }

  /** Shows the end. */
  finish(): void {
    this.#show("done");
    if (this.#output.isTTY) this.#output.write("\n");
  }

  #show(what: string): void {
    const share = this.#rowsInAll === 0 ? 1 : Math.min(1, this.#rows / this.#rowsInAll);
    const seconds = (this.#clock.monotonic() - this.#startedMs) / 1_000;
    const rate = seconds > 0 ? (this.#rows - this.#resumed) / seconds : 0;
    const parts = [
      ...shareParts(share, this.#output.isTTY ?? false, BAR_WIDTH),
      `${this.#rows} of ${this.#rowsInAll} rows`,
      `${Math.round(rate)}/s`,
      what,
    ];
    showLine(this.#output, parts.join("  "));
  }
}
