import type { DecisionStage, StageWatch } from "../../core/scheduling/stage-watch.ts";
import type { Clock } from "../../runtime/clock.ts";

/** Times one decision and its stages. */
export class StageTimer implements StageWatch {
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  readonly #stagesMs = new Map<DecisionStage, number>();
  #stage: DecisionStage | null = null;
  #enteredAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAtMs = clock.monotonic();
    this.#enteredAtMs = this.#startedAtMs;
  }

  get stagesMs(): ReadonlyMap<DecisionStage, number> {
    return this.#stagesMs;
  }

  enter(stage: DecisionStage): void {
    if (stage !== this.#stage) this.#leave(stage);
  }

  /** Ends the timing and returns the duration of the whole decision in milliseconds. */
  end(): number {
    this.#leave(null);
    return this.#enteredAtMs - this.#startedAtMs;
  }

  #leave(next: DecisionStage | null): void {
    const nowMs = this.#clock.monotonic();
    const stage = this.#stage;
    if (stage) this.#stagesMs.set(stage, nowMs - this.#enteredAtMs + (this.#stagesMs.get(stage) ?? 0));
    this.#stage = next;
    this.#enteredAtMs = nowMs;
  }
}
