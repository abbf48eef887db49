/** Where progress is shown: standard error, or a substitute in tests. */
export interface ProgressOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

const TERMINAL_EVERY_MS = 100;

const LINES_EVERY_MS = 2_000;

const COLUMNS = 120;

export function everyMs({ isTTY }: ProgressOutput): number {
  return isTTY ? TERMINAL_EVERY_MS : LINES_EVERY_MS;
}

/** Shows one line. On a terminal the line overwrites the last one; elsewhere each has a line of its own. */
export function showLine(output: ProgressOutput, line: string): void {
  if (output.isTTY) output.write(`\r${line.slice(0, (output.columns || COLUMNS) - 1)}\x1b[K`);
  else output.write(`${line}\n`);
}

/** The parts at the beginning of a progress line: a bar if `withBar`, and the percentage. `share` is a number from 0 to 1. */
export function shareParts(share: number, withBar: boolean, barWidth = 24): string[] {
  const filled = Math.round(share * barWidth);
  const bar = `${"█".repeat(filled)}${"░".repeat(barWidth - filled)}`;
  return [...(withBar ? [bar] : []), `${Math.floor(share * 100)} %`.padStart(5)];
}
