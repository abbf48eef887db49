/** Where progress is shown: standard error, or what a test has in its place. */
export interface ProgressOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

export const TERMINAL_EVERY_MS = 100;
export const LINES_EVERY_MS = 2_000;
const COLUMNS = 120;

/** Shows one line: written over the last one on a terminal, a line of its own elsewhere. */
export function showLine(output: ProgressOutput, line: string): void {
  if (output.isTTY) output.write(`\r${line.slice(0, (output.columns || COLUMNS) - 1)}\x1b[K`);
  else output.write(`${line}\n`);
}

/** What a line of progress begins with: a bar, if there is to be one, and the percentage. `share`: 0 to 1. */
export function shareParts(share: number, withBar: boolean, barWidth = 24): string[] {
  const filled = Math.round(share * barWidth);
  const bar = `${"█".repeat(filled)}${"░".repeat(barWidth - filled)}`;
  return [...(withBar ? [bar] : []), `${Math.floor(share * 100)} %`.padStart(5)];
}

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
    const seconds = (this.#now() - this.#startedMs) / 1_000;
    showLine(this.#output, this.#lineOf(seconds, this.#output.isTTY ?? false));
  }
}
