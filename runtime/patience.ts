import { BusError, busErrorIsTransient } from "./bus.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Logger } from "./logger.ts";
import { retry } from "./retry.ts";

const DELAY_MS = 200;
const DELAY_MS_MAX = 5_000;
/** How often the log says that a service still waits for the same thing. */
const LOG_EVERY_MS = 30_000;

/**
 * Repeats a preparation of a service until it succeeds. A service that starts while its database or its bus is away waits for
 * them and is not ready meanwhile, instead of ending only to be started again. An error that waiting does not cure (a refused password, a
 * missing migration) rejects at once.
 */
export class Patience {
  readonly #logger: Logger;
  readonly #isTransient: (error: unknown) => boolean;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  readonly #toldAtMs = new Map<string, number>();
  readonly #waitingFor = new Set<string>();

  /** `isTransient` says whether another try can help after an error that does not come from the bus. */
  constructor(options: {
    readonly logger: Logger;
    readonly isTransient: (error: unknown) => boolean;
    readonly clock?: Clock;
  }) {
    this.#logger = options.logger;
    this.#isTransient = options.isTransient;
    this.#clock = options.clock ?? systemClock;
  }

  /** Names of the operations that failed at least once and are being retried. */
  get waitingFor(): readonly string[] {
    return [...this.#waitingFor];
  }

  /** Resolves when `work` succeeds. Rejects with its error when waiting does not help, or after `giveUp`. `what` is named in the log. */
  until<Value>(what: string, work: () => Promise<Value>): Promise<Value> {
    return retry(work, {
      delayMs: DELAY_MS,
      delayMsMax: DELAY_MS_MAX,
      triesMax: Number.MAX_SAFE_INTEGER,
      isTransient: (error) => this.#mayHelp(what, error),
      clock: this.#clock,
      signal: this.#stop.signal,
    }).finally(() => this.#waitingFor.delete(what));
  }

  /** Ends all waiting, because the service is being closed. */
  giveUp(): void {
    this.#stop.abort();
  }

  #mayHelp(what: string, error: unknown): boolean {
    if (!(error instanceof BusError ? busErrorIsTransient[error.code] : this.#isTransient(error))) return false;
    this.#waitingFor.add(what);
    const nowMs = this.#clock.monotonic();
    const toldAtMs = this.#toldAtMs.get(what);
    if (toldAtMs === undefined || nowMs - toldAtMs >= LOG_EVERY_MS) {
      this.#toldAtMs.set(what, nowMs);
      this.#logger.warn(
        { err: error, waitingFor: what },
        `the process is not ready yet, because it is waiting for ${what}`,
      );
    }
    return true;
  }
}
