import type { Clock } from "../../runtime/clock.ts";
import { DueLine } from "../../runtime/due-line.ts";
import { type ProgressOutput, shareParts } from "../../runtime/progress-line.ts";

const BAR_WIDTH = 30;

/** Shows the progress of an import: one line that is overwritten on a terminal, a line at intervals elsewhere. */
export class Progress {
  readonly #line: DueLine;
  readonly #clock: Clock;
  readonly #rowsInAll: number;
  readonly #startedMs: number;
  #rows = 0;
  /** Rows copied before an interruption count for the percentage, but not for the rate. */
  #resumed = 0;

  constructor(output: ProgressOutput, clock: Clock, rowsInAll: number) {
    this.#line = new DueLine(output);
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
    this.#line.show(this.#clock.monotonic(), (withBar) => this.#state(what, withBar));
  }

  /** Shows the final state. */
  finish(): void {
    this.#line.end((withBar) => this.#state("done", withBar));
  }

  #state(what: string, withBar: boolean): string {
    const share = this.#rowsInAll === 0 ? 1 : Math.min(1, this.#rows / this.#rowsInAll);
    const seconds = (this.#clock.monotonic() - this.#startedMs) / 1_000;
    const rate = seconds > 0 ? (this.#rows - this.#resumed) / seconds : 0;
    const rows = `${this.#rows} of ${this.#rowsInAll} rows`;
    return [...shareParts(share, withBar, BAR_WIDTH), rows, `${Math.round(rate)}/s`, what].join("  ");
  }
}
