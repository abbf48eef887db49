import { buildFailureFadeMs, type SoftState } from "../../core/scheduling/soft-state.ts";
import type { Clock } from "../../runtime/clock.ts";

/** The in-process twin of the soft state, shared by all schedulers of a process; closing it for one leaves it to the others. */
export class MemorySoftState implements SoftState {
  readonly #clock: Clock;
  readonly #fadeMs: number;
  readonly #aliveUntilMs = new Map<string, number>();
  readonly #failures = new Map<string, { count: number; lastAtMs: number }>();

  constructor(clock: Clock, options: { readonly fadeMs?: number } = {}) {
    this.#clock = clock;
    this.#fadeMs = options.fadeMs ?? buildFailureFadeMs;
  }

  async announce(schedulerId: string, ttlMs: number): Promise<readonly string[]> {
    const nowMs = this.#clock.monotonic();
    this.#aliveUntilMs.set(schedulerId, nowMs + ttlMs);
    for (const [id, untilMs] of this.#aliveUntilMs) {
      if (untilMs <= nowMs) this.#aliveUntilMs.delete(id);
    }
    return [...this.#aliveUntilMs.keys()].sort();
  }

  async withdraw(schedulerId: string): Promise<void> {
    this.#aliveUntilMs.delete(schedulerId);
  }

  async recordBuildFailure(cell: string, host: string): Promise<void> {
    this.#dropFaded();
    const key = `${cell}/${host}`;
    const count = (this.#failures.get(key)?.count ?? 0) + 1;
    this.#failures.set(key, { count, lastAtMs: this.#clock.monotonic() });
  }

  async clearBuildFailures(cell: string, host: string): Promise<void> {
    this.#failures.delete(`${cell}/${host}`);
  }

  async buildFailures(): Promise<ReadonlyMap<string, number>> {
    this.#dropFaded();
    return new Map(Array.from(this.#failures, ([key, failure]) => [key, failure.count]));
  }

  async close(): Promise<void> {}

  #dropFaded(): void {
    const fadedAtMs = this.#clock.monotonic() - this.#fadeMs;
    for (const [key, failure] of this.#failures) {
      if (failure.lastAtMs <= fadedAtMs) this.#failures.delete(key);
    }
  }
}
