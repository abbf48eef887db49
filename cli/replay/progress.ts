import type { Tally } from "./tally.ts";

export interface ProgressOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

const BAR_WIDTH = 24;
const TERMINAL_EVERY_MS = 100;
const LINES_EVERY_MS = 2_000;

/** Shows a replay's state while it runs: one line that is written over on a terminal, a line now and then elsewhere. */
export class Progress {
  readonly #output: ProgressOutput;
  readonly #tally: Tally;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | null = null;
  #startedMs = 0;

  constructor(output: ProgressOutput, tally: Tally, now: () => number) {
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
    const line = progressLine(this.#tally, (this.#now() - this.#startedMs) / 1000, this.#output.isTTY ?? false);
    if (this.#output.isTTY) this.#output.write(`\r${line.slice(0, (this.#output.columns || 120) - 1)}\x1b[K`);
    else this.#output.write(`${line}\n`);
  }
}

export function progressLine(tally: Tally, seconds: number, withBar: boolean): string {
  const share = tally.tasks === 0 ? 1 : tally.ended / tally.tasks;
  const rate = seconds > 0 ? tally.ended / seconds : 0;
  const left = rate > 0 ? Math.ceil((tally.tasks - tally.ended) / rate) : null;
  const filled = Math.round(share * BAR_WIDTH);
  const parts = [
    ...(withBar ? [`${"█".repeat(filled)}${"░".repeat(BAR_WIDTH - filled)}`] : []),
    `${Math.floor(share * 100)} %`.padStart(5),
    `placed ${tally.placed}`,
    `retried ${tally.failedAttempts}`,
    `refused ${tally.noValidHost}`,
    ...(tally.errors > 0 ? [`errors ${tally.errors}`] : []),
    `${Math.round(rate)}/s`,
    left === null ? "" : `${durationOf(left)} left`,
  ];
  return parts.join("  ").trimEnd();
}

function durationOf(seconds: number): string {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
