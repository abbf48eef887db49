import { type Clock, systemClock } from "./clock.ts";
import { stoodStill } from "./stood-still.ts";

/** An operation took longer than allowed. The operation itself continues, and its result is ignored. */
export class DeadlineError extends Error {
  /** Name of the operation that was waited for. */
  readonly what: string;
  readonly deadlineMs: number;

  constructor(what: string, deadlineMs: number) {
    super(`${what} took longer than ${deadlineMs} ms`);
    this.name = "DeadlineError";
    this.what = what;
    this.deadlineMs = deadlineMs;
  }
}

/** How long an answer that came during a stall may take to be read afterwards. */
const READING_MS = 250;

/**
 * Settles as `promise` does, but rejects with a `DeadlineError` after `deadlineMs`. A rejection after that is swallowed. If this process itself stood
 * still until after the deadline, an answer may be waiting to be read, since timers run first. Then it gets a moment to be read.
 */
export function withDeadline<Value>(
  promise: Promise<Value>,
  deadlineMs: number,
  what: string,
  clock: Clock = systemClock,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const dueMs = clock.monotonic() + deadlineMs;
    const end = () => reject(new DeadlineError(what, deadlineMs));
    let timer = clock.setTimer(deadlineMs, () => {
      if (stoodStill(dueMs, clock.monotonic())) timer = clock.setTimer(READING_MS, end);
      else end();
    });
    promise.finally(() => timer.cancel()).then(resolve, reject);
  });
}
