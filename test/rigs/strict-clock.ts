import { type Clock, systemClock } from "../../runtime/clock.ts";

/**
 * The system's clock, of which no two readings are the same: what is stored later is newer. A test's two calls may be of the same millisecond, and
 * rows of the same millisecond are ordered by their random ids.
 */
export function strictClock(): Clock {
  let lastMs = 0;
  return {
    ...systemClock,
    now() {
      lastMs = Math.max(systemClock.now(), lastMs + 1);
      return lastMs;
    },
  };
}
