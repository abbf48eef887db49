import { createHash } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";

/** Number of lines kept when the whole history is not wanted, for a report to show around a violation. */
const KEPT = 400;

/** The events of a simulated world, one JSON object on each line. The same seed gives the same lines, byte for byte. */
export class History {
  readonly #clock: Clock;
  readonly #whole: boolean;
  readonly #hash = createHash("sha256");
  #lines: string[] = [];

  /** `whole` keeps every line instead of only the last ones. */
  constructor(clock: Clock, whole: boolean) {
    this.#clock = clock;
    this.#whole = whole;
  }

  record(who: string, what: string, more: Readonly<Record<string, unknown>> = {}): void {
    this.write(`${JSON.stringify({ atMs: round(this.#clock.monotonic()), who, what, ...more })}\n`);
  }

  /** Adds a finished line; loggers write here. */
  write(line: string): void {
    this.#hash.update(line);
    this.#lines.push(line);
    if (!this.#whole && this.#lines.length > KEPT * 2) this.#lines = this.#lines.slice(-KEPT);
  }

  /** The lines, oldest first. */
  lines(): readonly string[] {
    return this.#whole ? this.#lines : this.#lines.slice(-KEPT);
  }

  /** SHA-256 over all lines so far. */
  digest(): string {
    return this.#hash.copy().digest("hex");
  }
}

function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
