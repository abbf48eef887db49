import { CannotHarmError, type ChaosCloud } from "./chaos-cloud.ts";
import type { ChaosHistory } from "./chaos-history.ts";
import { type Harm, type HarmContext, harmOf } from "./harms.ts";
import type { Occurrence } from "./schedule.ts";

interface Fault {
  readonly harm: Harm;
  readonly occurrence: Occurrence;
  readonly faultId: number;
  /** Resolved when the fault has to end early. */
  readonly cutShort: PromiseWithResolvers<void>;
  readonly over: Promise<void>;
}

export interface NemesisOptions {
  readonly cloud: ChaosCloud;
  readonly history: ChaosHistory;
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** Returns the next fault id, counted over all rounds. */
  readonly nextFaultId: () => number;
}

/** Carries out a round's schedule of faults. An error in doing so is kept, and `stop` throws it. */
export class RoundNemesis {
  /** Share of the builds that fail at this moment. */
  failShare = 0;
  readonly #options: NemesisOptions;
  readonly #context: HarmContext;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #faults = new Set<Fault>();
  #error: unknown = null;

  constructor(options: NemesisOptions) {
    this.#options = options;
    this.#context = {
      cloud: options.cloud,
      random: options.random,
      setFailShare: (share) => {
        this.failShare = share;
      },
      pause: (ms) => pause(ms, options.signal),
      signal: options.signal,
    };
  }

  /** Descriptions of the faults that last at this moment. */
  get lasting(): readonly string[] {
    return [...this.#faults].map(({ harm, occurrence }) => `${occurrence.step.fault} ${harm.target}`);
  }

  /** Whether the whole schedule has been carried out and undone. */
  get done(): boolean {
    return this.#timers.size === 0 && this.#faults.size === 0;
  }

  begin(schedule: readonly Occurrence[]): void {
    for (const occurrence of schedule) {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        this.#start(occurrence);
      }, occurrence.atMs);
      this.#timers.add(timer);
    }
  }

  /** Begins no more faults, ends those that last, and resolves when they are undone. Throws the first error of the schedule. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    const lasting = [...this.#faults];
    for (const fault of lasting) fault.cutShort.resolve();
    await Promise.all(lasting.map((fault) => fault.over));
    if (this.#error !== null) throw this.#error;
  }

  #start(occurrence: Occurrence): void {
    const harm = harmOf(occurrence.step, this.#context);
    if (harm === null) return;
    const cutShort = Promise.withResolvers<void>();
    const faultId = this.#options.nextFaultId();
    const fault: Fault = { harm, occurrence, faultId, cutShort, over: this.#last(harm, occurrence, faultId, cutShort) };
    this.#faults.add(fault);
    void fault.over.then(() => this.#faults.delete(fault));
  }

  async #last(
    harm: Harm,
    { step, forMs }: Occurrence,
    faultId: number,
    cutShort: PromiseWithResolvers<void>,
  ): Promise<void> {
    const { history, signal } = this.#options;
    const line = { who: "nemesis", fault: step.fault, faultId, target: harm.target } as const;
    history.write({ ...line, what: "fault-begins" });
    let detail: { readonly detail?: string } = {};
    try {
      await harm.begin();
      await Promise.race([pause(forMs, signal), cutShort.promise]);
      await unlessBrokenOff(harm.end(), signal);
    } catch (error) {
      if (error instanceof CannotHarmError) detail = { detail: `skipped: ${error.message}` };
      else {
        detail = { detail: (error as Error).message };
        this.#error ??= error;
        // Part of the harm may have been done, to a deployment that stays.
        await unlessBrokenOff(harm.end(), signal).catch(() => undefined);
      }
    }
    history.write({ ...line, what: "fault-ends", ...detail });
  }
}

/** Resolves with the work, or when the run is broken off, because the cloud then ends the running work. */
async function unlessBrokenOff(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const brokenOff = Promise.withResolvers<void>();
  const breakOff = () => brokenOff.resolve();
  signal.addEventListener("abort", breakOff);
  if (signal.aborted) breakOff();
  try {
    await Promise.race([work, brokenOff.promise]);
  } finally {
    signal.removeEventListener("abort", breakOff);
    work.catch(() => undefined); // The promise may reject when nothing awaits it.
  }
}

/** Resolves after `ms`, or when the run is broken off. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
