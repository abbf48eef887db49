import type { ProgressOutput } from "../replay/progress.ts";

/** How far a drain is. */
export interface DrainTally {
  total: number;
  moved: number;
  stayed: number;
}

const BAR_WIDTH = 24;
const TERMINAL_EVERY_MS = 100;
const LINES_EVERY_MS = 2_000;

/** Shows a drain while it runs: one line that is written over on a terminal, a line now and then elsewhere. */
export class DrainProgress {
  readonly #output: ProgressOutput;
  readonly #tally: DrainTally;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | null = null;
  #startedMs = 0;

  constructor(output: ProgressOutput, tally: DrainTally, now: () => number) {
    this.#output = output;
    this.#tally = tally;
    this.#now = now;
  }

  start(): void {
    this.#startedMs = this.#now();
    this.#timer = setInterval(() => this.#show(), this.#output.isTTY ? TERMINAL_EVERY_MS : LINES_EVERY_MS);
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
    const line = drainLine(this.#tally, (this.#now() - this.#startedMs) / 1000, this.#output.isTTY ?? false);
    if (this.#output.isTTY) this.#output.write(`\r${line.slice(0, (this.#output.columns || 120) - 1)}\x1b[K`);
    else this.#output.write(`${line}\n`);
  }
}

export function drainLine({ total, moved, stayed }: DrainTally, seconds: number, withBar: boolean): string {
  const ended = moved + stayed;
  const share = total === 0 ? 1 : ended / total;
  const filled = Math.round(share * BAR_WIDTH);
  const rate = seconds > 0 ? ended / seconds : 0;
  const parts = [
    ...(withBar ? [`${"█".repeat(filled)}${"░".repeat(BAR_WIDTH - filled)}`] : []),
    `${Math.floor(share * 100)} %`.padStart(5),
    `moved ${moved} of ${total}`,
    ...(stayed > 0 ? [`stayed ${stayed}`] : []),
    `${rate.toFixed(1)}/s`,
  ];
  return parts.join("  ");
}
