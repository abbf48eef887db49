import type { Clock } from "../../runtime/clock.ts";

/** Waits for this time, or, with null, for ever. Rejects when the signal is raised. */
export function pauseFor(delayMs: number | null, signal: AbortSignal, clock: Clock): Promise<void> {
  if (signal.aborted) return Promise.reject(new Error("the call was given up"));
  return new Promise((resolve, reject) => {
    const timer = delayMs === null ? null : clock.setTimer(delayMs, end);
    function end(): void {
      signal.removeEventListener("abort", callOff);
      resolve();
    }
    function callOff(): void {
      timer?.cancel();
      reject(new Error("the call was given up"));
    }
    signal.addEventListener("abort", callOff, { once: true });
  });
}
