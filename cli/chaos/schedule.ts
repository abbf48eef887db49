import type { FaultStep, Moment } from "./plan.ts";

/** A fault that is to happen. Times count from the begin of the round. */
export interface Occurrence {
  readonly step: FaultStep;
  readonly atMs: number;
  readonly forMs: number;
}

/** Faults of one round at most, so that a plan's slip cannot fill the memory. */
const OCCURRENCES_MAX = 10_000;

/** When which faults of a round happen, by time. What would begin at its end or later does not. */
export function scheduleOf(steps: readonly FaultStep[], durationMs: number): readonly Occurrence[] {
  const all: Occurrence[] = [];
  for (const step of steps) {
    const untilMs = Math.min(durationMs, step.until === null ? durationMs : msOf(step.until, durationMs));
    const forMs = msOf(step.for, durationMs);
    let atMs = msOf(step.at, durationMs);
    while (atMs < untilMs && all.length < OCCURRENCES_MAX) {
      all.push({ step, atMs, forMs });
      atMs = step.everyMs === null ? untilMs : atMs + Math.max(1, step.everyMs);
    }
  }
  return all.sort((one, other) => one.atMs - other.atMs);
}

function msOf(moment: Moment, durationMs: number): number {
  return "ms" in moment ? moment.ms : moment.share * durationMs;
}
