import { createHash } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";

/** Number of lines kept when the whole history is not wanted, for a report to show around a violation. */
const KEPT = 400;
/** Lines are hashed together, because a call of the hash costs more than a line of it. */
const HASHED_TOGETHER = 64;

/** The events of a simulated world, one JSON object on each line. The same seed gives the same lines, byte for byte. */
export class History {
  readonly #clock: Clock;
  readonly #whole: boolean;
  readonly #hash = createHash("sha256");
  #lines: string[] = [];
  /** The last lines, which are not in the hash yet. */
  #unhashed: string[] = [];

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
    this.#unhashed.push(line);
    if (this.#unhashed.length === HASHED_TOGETHER) this.#hashAll();
    this.#lines.push(line);
    if (!this.#whole && this.#lines.length > KEPT * 2) this.#lines = this.#lines.slice(-KEPT);
  }

  /** The lines, oldest first. */
  lines(): readonly string[] {
    return this.#whole ? this.#lines : this.#lines.slice(-KEPT);
  }

  /** SHA-256 over all lines so far. */
  digest(): string {
    this.#hashAll();
    return this.#hash.copy().digest("hex");
  }

  #hashAll(): void {
    this.#hash.update(this.#unhashed.join(""));
    this.#unhashed = [];
  }
}

function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
