import { type Clock, systemClock } from "../../runtime/clock.ts";

/** A clock that runs `speed` times as fast as the system's, so that waits that the product fixes in seconds do not make tests slow. */
export function quickClock(speed: number): Clock {
  const startMs = systemClock.now();
  const monotonicStartMs = systemClock.monotonic();
  const passedMs = () => (systemClock.monotonic() - monotonicStartMs) * speed;
  return {
    now: () => Math.floor(startMs + passedMs()),
    monotonic: () => monotonicStartMs + passedMs(),
    setTimer: (delayMs, run) => systemClock.setTimer(delayMs / speed, run),
  };
}
