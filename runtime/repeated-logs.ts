import type { Clock } from "./clock.ts";

/** How often the same fault is logged by default, in milliseconds. */
const REPEATED_LOG_MS = 1_000;

/** Writes log lines about faults that may occur very often, such as those that hit many tasks at once, only from time to time. */
export class RepeatedLogs {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #loggedAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Calls `write` unless it was called for the same fault within the last `everyMs` milliseconds. `fault` names the fault. */
  log(fault: string, write: () => void, everyMs = REPEATED_LOG_MS): void {
    const nowMs = this.#clock.monotonic();
    if (nowMs - (this.#loggedAtMs.get(fault) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
    this.#loggedAtMs.set(fault, nowMs);
    write();
  }
}
