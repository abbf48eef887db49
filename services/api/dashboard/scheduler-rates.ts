import type { SchedulerFigures } from "../../../core/stores/scheduler-figures.ts";
import type { LiveScheduler } from "./live-picture.ts";

/** Rates are of about this time, so that a slow scheduler's rate does not jump between 0 and 1. */
const WINDOW_MS = 10_000;

/** Makes rates of the figures that schedulers announce from time to time. */
export class SchedulerRates {
  /** By scheduler: its readings of the last WINDOW_MS, the oldest first. */
  readonly #readings = new Map<string, SchedulerFigures[]>();

  /** Takes the newest figures of the schedulers that are alive, and returns the rates of each. Figures may come twice. */
  take(alive: readonly string[], figures: ReadonlyMap<string, SchedulerFigures>): readonly LiveScheduler[] {
    for (const id of this.#readings.keys()) if (!alive.includes(id)) this.#readings.delete(id);
    return alive.map((id) => {
      const newest = figures.get(id);
      const readings = this.#readings.get(id) ?? [];
      if (newest !== undefined && newest.at > (readings.at(-1)?.at ?? Number.NEGATIVE_INFINITY)) readings.push(newest);
      while ((readings.at(-1)?.at ?? 0) - (readings[0]?.at ?? 0) > WINDOW_MS) readings.shift();
      this.#readings.set(id, readings);
      return ratesOf(id, readings);
    });
  }
}

function ratesOf(id: string, readings: readonly SchedulerFigures[]): LiveScheduler {
  const [first, last] = [readings[0], readings.at(-1)];
  if (first === undefined || last === undefined || first === last)
    return { id, placed: null, refused: null, racesLost: null, queueAgeMs: null };
  const seconds = (last.at - first.at) / 1_000;
  const of = (name: "placed" | "refused" | "racesLost") => tenths((last[name] - first[name]) / seconds);
  const taken = last.taken - first.taken;
  return {
    ...{ id, placed: of("placed"), refused: of("refused"), racesLost: of("racesLost") },
    queueAgeMs: taken === 0 ? null : Math.round((last.queuedMs - first.queuedMs) / taken),
  };
}

const tenths = (value: number): number => Math.round(value * 10) / 10;
