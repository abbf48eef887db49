/** Where progress is shown: standard error, or what a test has in its place. */
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
