import type { HistoryLine } from "./history-line.ts";

/** A line of the history without its time. */
type Untimed<Line> = Line extends HistoryLine ? Omit<Line, "atMs"> & { readonly atMs?: number } : never;

/** The history of a run, with the run's clock. */
export class ChaosHistory {
  readonly #startedMs = performance.now();
  readonly #lines: HistoryLine[] = [];

  /** Milliseconds since the run began. */
  now(): number {
    return Math.round((performance.now() - this.#startedMs) * 10) / 10;
  }

  /** Adds a line. `atMs` is given when the event was seen earlier than it is written. */
  write(line: Untimed<HistoryLine>): void {
    const { atMs = this.now(), ...rest } = line;
    this.#lines.push({ atMs, ...rest } as HistoryLine);
  }

  /** The lines, ordered by time. */
  lines(): readonly HistoryLine[] {
    return this.#lines.toSorted((one, other) => one.atMs - other.atMs);
  }
}
