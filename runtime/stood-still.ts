/** A timer that is later than this shows that this process itself stood still. */
const LATENESS_MS_MAX = 1_000;

/**
 * Whether this process itself stood still until after a timer was due. What came meanwhile may be waiting to be read, because timers that are due run
 * first. So its absence shows nothing yet.
 */
export const stoodStill = (dueMs: number, nowMs: number): boolean => nowMs - dueMs > LATENESS_MS_MAX;
