import { type Clock, systemClock } from "./clock.ts";

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

/** Settles as `promise` does, but rejects with a `DeadlineError` after `deadlineMs`. A rejection after that is swallowed. */
export function withDeadline<Value>(
  promise: Promise<Value>,
  deadlineMs: number,
  what: string,
  clock: Clock = systemClock,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(deadlineMs, () => reject(new DeadlineError(what, deadlineMs)));
    promise.finally(() => timer.cancel()).then(resolve, reject);
  });
}
