import type { HostPick } from "../../core/scheduling/host-pick.ts";
import type { LawsReading } from "../../core/stores/laws-reading.ts";
import type { SchedulerFigures } from "../../core/stores/scheduler-figures.ts";
import {
  buildFailureFadeMs,
  fadedCount,
  pickFadeMs,
  picksReadMax,
  type SoftState,
} from "../../core/stores/soft-state.ts";
import type { Clock } from "../../runtime/clock.ts";

/** The in-process twin of the soft state, shared by all schedulers of a process. When one of them closes it, the others keep using it. */
export class MemorySoftState implements SoftState {
  readonly #clock: Clock;
  readonly #fadeMs: number;
  readonly #aliveUntilMs = new Map<string, number>();
  readonly #failures = new Map<string, { count: number; lastAtMs: number }>();
  readonly #figures = new Map<string, { readonly figures: SchedulerFigures; readonly untilMs: number }>();
  #laws: { readonly reading: LawsReading; readonly untilMs: number } | null = null;

  /** By scheduler and host. The oldest pick is first. */
  readonly #picks = new Map<string, HostPick & { readonly schedulerId: string; readonly untilMs: number }>();

  constructor(clock: Clock, options: { readonly fadeMs?: number } = {}) {
    this.#clock = clock;
    this.#fadeMs = options.fadeMs ?? buildFailureFadeMs;
  }

  async announce(schedulerId: string, ttlMs: number): Promise<readonly string[]> {
    this.#aliveUntilMs.set(schedulerId, this.#clock.monotonic() + ttlMs);
    return this.living();
  }

  async living(): Promise<readonly string[]> {
    const nowMs = this.#clock.monotonic();
    for (const [id, untilMs] of this.#aliveUntilMs) {
      if (untilMs <= nowMs) this.#aliveUntilMs.delete(id);
    }
    return [...this.#aliveUntilMs.keys()].sort();
  }

  async withdraw(schedulerId: string): Promise<void> {
    this.#aliveUntilMs.delete(schedulerId);
    this.#figures.delete(schedulerId);
  }

  async recordFigures(schedulerId: string, figures: SchedulerFigures, ttlMs: number): Promise<void> {
    const nowMs = this.#clock.monotonic();
    for (const [id, { untilMs }] of this.#figures) if (untilMs <= nowMs) this.#figures.delete(id);
    this.#figures.set(schedulerId, { figures, untilMs: nowMs + ttlMs });
  }

  async figuresOf(schedulerIds: readonly string[]): Promise<ReadonlyMap<string, SchedulerFigures>> {
    const nowMs = this.#clock.monotonic();
    const found = new Map<string, SchedulerFigures>();
    for (const id of schedulerIds) {
      const kept = this.#figures.get(id);
      if (kept !== undefined && kept.untilMs > nowMs) found.set(id, kept.figures);
    }
    return found;
  }

  async recordBuildFailure(cell: string, host: string): Promise<void> {
    this.#dropFaded();
    const key = `${cell}/${host}`;
    const lastAtMs = this.#clock.monotonic();
    const before = this.#failures.get(key);
    const count = before === undefined ? 1 : fadedCount(before.count, lastAtMs - before.lastAtMs, this.#fadeMs) + 1;
    this.#failures.set(key, { count, lastAtMs });
  }

  async clearBuildFailures(cell: string, host: string): Promise<void> {
    this.#failures.delete(`${cell}/${host}`);
  }

  async buildFailures(): Promise<ReadonlyMap<string, number>> {
    this.#dropFaded();
    const nowMs = this.#clock.monotonic();
    return new Map(
      Array.from(this.#failures, ([key, { count, lastAtMs }]) => [
        key,
        fadedCount(count, nowMs - lastAtMs, this.#fadeMs),
      ]),
    );
  }

  async recordPicks(schedulerId: string, picks: readonly HostPick[]): Promise<void> {
    const untilMs = this.#clock.monotonic() + pickFadeMs;
    for (const { cell, host } of picks) {
      const key = `${schedulerId}/${cell}/${host}`;
      this.#picks.delete(key);
      this.#picks.set(key, { schedulerId, cell, host, untilMs });
    }
    this.#dropFadedPicks();
  }

  async recentPicks(schedulerId: string): Promise<readonly HostPick[]> {
    this.#dropFadedPicks();
    return [...this.#picks.values()]
      .slice(-picksReadMax)
      .filter((pick) => pick.schedulerId !== schedulerId)
      .map(({ cell, host }) => ({ cell, host }));
  }

  async recordLaws(reading: LawsReading, ttlMs: number): Promise<void> {
    this.#laws = { reading, untilMs: this.#clock.monotonic() + ttlMs };
  }

  async laws(): Promise<LawsReading | null> {
    return this.#laws !== null && this.#laws.untilMs > this.#clock.monotonic() ? this.#laws.reading : null;
  }

  async close(): Promise<void> {}

  #dropFadedPicks(): void {
    const nowMs = this.#clock.monotonic();
    for (const [key, { untilMs }] of this.#picks) {
      if (untilMs > nowMs) return;
      this.#picks.delete(key);
    }
  }

  #dropFaded(): void {
    const fadedAtMs = this.#clock.monotonic() - this.#fadeMs;
    for (const [key, failure] of this.#failures) {
      if (failure.lastAtMs <= fadedAtMs) this.#failures.delete(key);
    }
  }
}
