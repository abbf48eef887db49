import type { AuditOptions } from "../audit/audit-twice.ts";
import { LawBoard } from "../audit/law-board.ts";
import { watchCloud } from "../audit/watch-cloud.ts";
import type { LawsReading } from "../core/stores/laws-reading.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";

const EVERY_MS = 2_000;
/** The audit ends when it was not read for this time. */
const UNASKED_MS = 30_000;
/** After a failure, the audit does not begin again before this time has passed. */
const FAILED_PAUSE_MS = 10_000;

/**
 * The continuous audit of a cloud in one process, as long as its findings are read. Two modes: **off**, and **on** from the first
 * question until UNASKED_MS after the last one. An audit that fails is begun again by a question after FAILED_PAUSE_MS. A new audit waits until the
 * last one has ended.
 */
export class LawWatch {
  readonly #options: AuditOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #ending: AbortController | null = null;
  #done: Promise<void> = Promise.resolve();
  #board = new LawBoard();
  #askedAtMs = 0;
  /** No audit begins before this time of the monotonic clock. */
  #notBeforeMs = 0;
  #timer: Timer | null = null;
  #closed = false;

  constructor(options: AuditOptions, deps: { readonly clock: Clock; readonly logger: Logger }) {
    this.#options = options;
    this.#clock = deps.clock;
    this.#logger = deps.logger;
  }

  /** The findings of the audit's last complete reading. Null before the first one, which this call begins. */
  laws(): LawsReading | null {
    this.#askedAtMs = this.#clock.monotonic();
    if (this.#ending === null && !this.#closed && this.#askedAtMs >= this.#notBeforeMs) this.#start();
    return this.#board.laws();
  }

  /** Can be repeated. Resolves when the last reading has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stop();
    await this.#done;
  }

  #start(): void {
    const ending = new AbortController();
    const board = new LawBoard();
    this.#ending = ending;
    this.#board = board;
    this.#done = this.#done.then(() => this.#watch(ending.signal, board));
    this.#look();
  }

  /** Audits until the end. Never rejects. */
  async #watch(signal: AbortSignal, board: LawBoard): Promise<void> {
    if (signal.aborted) return;
    try {
      await watchCloud({
        ...{ ...this.#options, everyMs: EVERY_MS, signal },
        onChange: (change) => board.take(change, this.#clock.now()),
        onReading: (reading) => board.read(reading, this.#clock.now()),
      });
    } catch (error) {
      this.#logger.warn(
        { err: error },
        "the audit whose results the dashboard shows has failed; it starts again after a pause, when a dashboard asks for it",
      );
      if (signal.aborted) return;
      this.#notBeforeMs = this.#clock.monotonic() + FAILED_PAUSE_MS;
      this.#stop();
    }
  }

  /** Ends the audit when it was not read for a while. */
  #look(): void {
    this.#timer = this.#clock.setTimer(UNASKED_MS, () => {
      if (this.#clock.monotonic() - this.#askedAtMs >= UNASKED_MS) this.#stop();
      else this.#look();
    });
  }

  #stop(): void {
    this.#timer?.cancel();
    this.#ending?.abort();
    this.#ending = null;
    // The audit makes one more reading after it was told to end, which must not be shown when somebody asks later.
    this.#board = new LawBoard();
  }
}
