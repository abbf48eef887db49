import type { HistoryLine } from "./history-line.ts";

/** A line before it has its time. */
type Untimed<Line> = Line extends HistoryLine ? Omit<Line, "atMs"> & { readonly atMs?: number } : never;

/** What happens in a run, by its clock. */
export class ChaosHistory {
  readonly #startedMs = performance.now();
  readonly #lines: HistoryLine[] = [];

  /** Milliseconds since the run began. */
  now(): number {
    return Math.round((performance.now() - this.#startedMs) * 10) / 10;
  }

  /** `atMs`: for what is told later than it was seen. */
  write(line: Untimed<HistoryLine>): void {
    const { atMs = this.now(), ...rest } = line;
    this.#lines.push({ atMs, ...rest } as HistoryLine);
  }

  /** By time. */
  lines(): readonly HistoryLine[] {
    return this.#lines.toSorted((one, other) => one.atMs - other.atMs);
  }
}
