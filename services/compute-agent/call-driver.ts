import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError } from "../../runtime/deadline.ts";

/** A driver that has not ended so long after its signal was raised is reported. */
const STUCK_MS = 10_000;

/**
 * Makes one call of the driver. Raises the driver's signal when `signal` is raised or when the call takes longer than `timeoutMs`, and
 * then waits for the driver: while a call goes on, nobody knows what state it will leave the guest in. A call that fails after its
 * signal was raised rejects with the reason for that.
 */
export async function callDriver<Value>(
  call: (signal: AbortSignal) => Promise<Value>,
  options: {
    readonly signal: AbortSignal;
    readonly timeoutMs: number;
    /** Begins the message of the error, as "the driver's stop". */
    readonly what: string;
    readonly clock: Clock;
    /** The driver does not give up: called once. */
    readonly onStuck: () => void;
  },
): Promise<Value> {
  const { signal, timeoutMs, what, clock } = options;
  signal.throwIfAborted();
  const control = new AbortController();
  let timer = clock.setTimer(timeoutMs, () => raise(new DeadlineError(what, timeoutMs)));
  const raise = (reason: unknown) => {
    timer.cancel();
    timer = clock.setTimer(STUCK_MS, options.onStuck);
    control.abort(reason);
  };
  const callOff = () => raise(signal.reason);
  signal.addEventListener("abort", callOff, { once: true });
  try {
    return await call(control.signal);
  } catch (error) {
    throw control.signal.aborted ? control.signal.reason : error;
  } finally {
    timer.cancel();
    signal.removeEventListener("abort", callOff);
  }
}
