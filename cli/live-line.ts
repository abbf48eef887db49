/** Where progress is shown: standard error, or what a test has in its place. */
export interface ProgressOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

const TERMINAL_EVERY_MS = 100;
const LINES_EVERY_MS = 2_000;
const COLUMNS = 120;

function everyMs({ isTTY }: ProgressOutput): number {
  return isTTY ? TERMINAL_EVERY_MS : LINES_EVERY_MS;
}

/** Shows one line: written over the last one on a terminal, a line of its own elsewhere. */
function showLine(output: ProgressOutput, line: string): void {
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
