/** Time and timers behind an interface, so that a simulator can own them. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds on a clock that never jumps; use it for durations. */
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

/** Milliseconds since the epoch with fractions, the same in all threads of a process. Latencies are measured with it. */
export function preciseNow(): number {
  return performance.timeOrigin + performance.now();
}
