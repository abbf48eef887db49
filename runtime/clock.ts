/** Time and timers behind an interface, so that a simulator can own them. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds on a clock that never jumps; for durations. */
  monotonic(): number;
  setTimer(delayMs: number, run: () => void): Timer;
}
export interface Timer {
  cancel(): void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(delayMs, run) {
    const handle = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Milliseconds since the epoch with fractions, alike in all threads of a process: what latencies are measured by. */
export function preciseNow(): number {
  return performance.timeOrigin + performance.now();
}
