import { assert } from "../core/assert.ts";
import type { FaultStep, Moment } from "./plan.ts";

/** A scheduled fault. Times count from the beginning of the round. */
export interface Occurrence {
  readonly step: FaultStep;
  readonly atMs: number;
  readonly forMs: number;
}

/** Maximum number of faults in one round, so that a mistake in a plan cannot fill the memory. */
export const OCCURRENCES_MAX = 10_000;

/** How many times a step happens in a round. */
export function countOf(step: FaultStep, durationMs: number): number {
  const lastsMs = untilOf(step, durationMs) - msOf(step.at, durationMs);
  if (lastsMs <= 0) return 0;
  return step.everyMs === null ? 1 : Math.ceil(lastsMs / intervalOf(step));
}

/**
 * The faults of a round, ordered by time. Faults that would begin at its end or later are left out. It is the caller's error to schedule
 * more than OCCURRENCES_MAX.
 */
export function scheduleOf(steps: readonly FaultStep[], durationMs: number): readonly Occurrence[] {
  const all: Occurrence[] = [];
  for (const step of steps) {
    const forMs = msOf(step.for, durationMs);
    for (let time = 0; time < countOf(step, durationMs); time += 1) {
      assert(all.length < OCCURRENCES_MAX, "the plan makes more faults than allowed");
      all.push({ step, atMs: msOf(step.at, durationMs) + time * intervalOf(step), forMs });
    }
  }
  return all.sort((one, other) => one.atMs - other.atMs);
}

const intervalOf = ({ everyMs }: FaultStep): number => Math.max(1, everyMs ?? 1);

const untilOf = ({ until }: FaultStep, durationMs: number): number =>
  Math.min(durationMs, until === null ? durationMs : msOf(until, durationMs));

function msOf(moment: Moment, durationMs: number): number {
  return "ms" in moment ? moment.ms : moment.share * durationMs;
}
