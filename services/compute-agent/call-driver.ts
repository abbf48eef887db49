import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError } from "../../runtime/deadline.ts";

/** A driver call that has not ended this long after its signal was raised is reported. */
const STUCK_MS = 10_000;

/**
 * Makes one call of the driver. Raises the driver's signal when `signal` is raised or when the call takes longer than `timeoutMs`, and then
 * waits for the driver, because the guest's final state is unknown until the call ends. A call that fails after its signal was raised
 * rejects with the signal's reason.
 */
export async function callDriver<Value>(
  call: (signal: AbortSignal) => Promise<Value>,
  options: {
    readonly signal: AbortSignal;
    readonly timeoutMs: number;
    /** The subject of the error message, such as "the driver's stop". */
    readonly what: string;
    readonly clock: Clock;
    /** Called once if the driver does not end after its signal was raised. */
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
