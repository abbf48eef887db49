import { type DecisionEffort, placedDecision, refusedDecision } from "../../core/scheduling/explain/decision.ts";
import type { Miss } from "../../core/scheduling/explain/nearest-misses.ts";
import { trimDecision } from "../../core/scheduling/explain/trim-decision.ts";
import type { HostChoice, HostWeight } from "../../core/scheduling/host-chooser.ts";
import type { DecisionRecord, DecisionStore } from "../../core/stores/api/decision-store.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { SchedulerEvents } from "./events.ts";
import type { SchedulerSettings } from "./settings.ts";

/** Maximum number of records that wait for the database; further ones are dropped. */
const WAITING_MAX = 5_000;
/** Maximum number of records that one statement writes. */
const BATCH_MAX = 500;
/** Refusals per second for which the nearest misses are searched. Each search looks at all hosts. */
const MISSES_PER_SECOND = 20;
/** Pause between two looks at an empty list, and before records are written again whose database did not answer. */
const IDLE_MS = 500;
/** Time between two purges. */
const PURGE_EVERY_MS = 60_000;

type Chosen = HostChoice & { readonly kind: "chosen" };

/**
 * Keeps the decisions on requests without delaying the requests: records wait here and are written in batches some times a second. A process
 * that is killed loses those that wait. Refusals are kept as long as there is room. Only a limited number of placements per second is kept, since
 * under load each record would cost as much as the claim itself, but a burst after a quiet time is kept in full. Decisions that are not kept are counted.
 * While the database is unreachable records wait, and are dropped when there are too many.
 */
export class DecisionRecorder {
  readonly #store: Pick<DecisionStore, "putDecisions" | "purgeDecisions"> | null;
  readonly #clock: Clock;
  readonly #events: Pick<SchedulerEvents, "decisionsDropped" | "refreshFailed">;
  readonly #settings: Pick<SchedulerSettings, "schedulerId" | "decisionsKeptMs" | "decisionsMax" | "decisionFlushMs">;
  readonly #ticker: Ticker;
  readonly #placements: Allowance;
  readonly #misses: Allowance;
  #waiting: DecisionRecord[] = [];
  #isAway = false;
  #purgedAtMs: number;

  /** Without a store, no decision is kept. */
  constructor(
    deps: {
      readonly store: Pick<DecisionStore, "putDecisions" | "purgeDecisions"> | null;
      readonly clock: Clock;
      readonly events: Pick<SchedulerEvents, "decisionsDropped" | "refreshFailed">;
    },
    settings: Pick<
      SchedulerSettings,
      "schedulerId" | "decisionsPerSecond" | "decisionsBurst" | "decisionsKeptMs" | "decisionsMax" | "decisionFlushMs"
    >,
  ) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#events = deps.events;
    this.#settings = settings;
    this.#placements = new Allowance(deps.clock, {
      perSecond: settings.decisionsPerSecond,
      burst: settings.decisionsBurst,
    });
    this.#misses = new Allowance(deps.clock, { perSecond: MISSES_PER_SECOND, burst: MISSES_PER_SECOND });
    this.#purgedAtMs = deps.clock.monotonic();
    this.#ticker = new Ticker({
      clock: deps.clock,
      // Records that came during a purge do not wait longer than others.
      pauseMs: () => (this.#waiting.length > 0 && !this.#isAway ? settings.decisionFlushMs : IDLE_MS),
      work: () => this.flush(),
      onError: (error) => {
        this.#isAway = true;
        deps.events.refreshFailed("kept decisions", error);
      },
    });
  }

  /** Whether decisions are kept at all. */
  get keeps(): boolean {
    return this.#store !== null;
  }

  /**
   * Returns each weigher's share in the weights of the chosen hosts if the decision is going to be kept. Otherwise counts the decision as
   * dropped and returns null.
   */
  weightsOf(choice: Chosen): readonly HostWeight[] | null {
    if (this.#store === null) return null;
    if (this.#waiting.length < WAITING_MAX && this.#placements.take()) return choice.weights();
    this.#events.decisionsDropped(1);
    return null;
  }

  placed(spec: ServerSpec, choice: Chosen, weights: readonly HostWeight[], effort: DecisionEffort): void {
    this.#keep(spec, () => trimDecision(placedDecision({ ...choice, weights }, effort)));
  }

  /**
   * `findMisses` looks at all hosts for those that nearly fit. Call this method before the next await, while the view is still the one of
   * the decision.
   */
  refused(
    spec: ServerSpec,
    choice: HostChoice & { readonly kind: "none" },
    found: { readonly unseen: readonly string[]; readonly findMisses: () => readonly Miss[] },
    effort: DecisionEffort,
  ): void {
    this.#keep(spec, () => {
      const misses = this.#misses.take() ? found.findMisses() : [];
      return trimDecision(refusedDecision({ funnels: choice.funnels, misses, unseen: found.unseen }, effort));
    });
  }

  start(): void {
    if (this.#store !== null) this.#ticker.start();
  }

  /** Writes the waiting records once more before the end. A failure is only logged. */
  async stop(): Promise<void> {
    await this.#ticker.stop();
    await this.flush().catch((error: unknown) => this.#events.refreshFailed("kept decisions", error));
  }

  /** Writes the waiting records. Rejects as the store does; records that were not written wait for the next flush. */
  async flush(): Promise<void> {
    if (this.#store === null) return;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH_MAX);
      await this.#store.putDecisions(batch);
      this.#waiting.splice(0, batch.length);
    }
    this.#isAway = false;
    if (this.#clock.monotonic() - this.#purgedAtMs < PURGE_EVERY_MS) return;
    this.#purgedAtMs = this.#clock.monotonic();
    const { decisionsKeptMs, decisionsMax } = this.#settings;
    await this.#store.purgeDecisions({ beforeMs: this.#clock.now() - decisionsKeptMs, recordsMax: decisionsMax });
  }

  #keep(spec: ServerSpec, decide: () => DecisionRecord["decision"]): void {
    if (this.#store === null) return;
    if (this.#waiting.length >= WAITING_MAX) {
      this.#events.decisionsDropped(1);
      return;
    }
    this.#waiting.push({
      serverUuid: spec.uuid,
      requestId: spec.requestId,
      scheduler: this.#settings.schedulerId,
      atMs: this.#clock.now(),
      decision: decide(),
    });
    if (!this.#isAway) this.#ticker.hurry(this.#settings.decisionFlushMs);
  }
}

/** A rate limit in items per second. Unused items are saved up to `burst`. */
class Allowance {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #left: number;
  #countedAtMs: number;

  constructor(clock: Clock, { perSecond, burst }: { readonly perSecond: number; readonly burst: number }) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#left = burst;
    this.#countedAtMs = clock.monotonic();
  }

  take(): boolean {
    const nowMs = this.#clock.monotonic();
    this.#left = Math.min(this.#burst, this.#left + ((nowMs - this.#countedAtMs) / 1_000) * this.#perSecond);
    this.#countedAtMs = nowMs;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
