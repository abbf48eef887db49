import type { AuditOptions } from "../audit/audit-twice.ts";
import { type AuditChange, watchCloud } from "../audit/watch-cloud.ts";
import { type FoundViolation, keyOfViolation } from "../core/audit/violation.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { LiveLaws } from "../services/api/dashboard/live-picture.ts";

const EVERY_MS = 2_000;
/** The audit ends when nobody has asked for so long. */
const UNASKED_MS = 30_000;
/** After a failure the audit begins again at the earliest after so long. */
const FAILED_PAUSE_MS = 10_000;
const SHOWN_MAX = 20;

/**
 * The continuous audit of a cloud in one process, as long as somebody asks for what it has found. Two modes: **off**, and **on** from the first
 * question until UNASKED_MS after the last one. An audit that fails is begun again by a question after FAILED_PAUSE_MS. A new audit waits until the
 * last one has ended.
 */
export class LawWatch {
  readonly #options: AuditOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #ending: AbortController | null = null;
  #done: Promise<void> = Promise.resolve();
  #readAtMs: number | null = null;
  #askedAtMs = 0;
  /** No audit begins before this time of the monotonic clock. */
  #notBeforeMs = 0;
  #timer: Timer | null = null;
  #closed = false;
  readonly #broken = new Map<string, FoundViolation>();
  /** Sources that cannot be read. A reading without them does not show that the laws hold. */
  readonly #unread = new Set<string>();

  constructor(options: AuditOptions, deps: { readonly clock: Clock; readonly logger: Logger }) {
    this.#options = options;
    this.#clock = deps.clock;
    this.#logger = deps.logger;
  }

  /** What the audit has found, as of its last complete reading. Null before the first one, which this call begins. */
  laws(): LiveLaws | null {
    this.#askedAtMs = this.#clock.monotonic();
    if (this.#ending === null && !this.#closed && this.#askedAtMs >= this.#notBeforeMs) this.#start();
    if (this.#readAtMs === null) return null;
    const broken = [...this.#broken.values()].slice(-SHOWN_MAX);
    return {
      at: this.#readAtMs,
      broken: broken.map(({ law, where, what, proof }) => ({
        ...{ law: law === "groups" ? 0 : law, subject: where, evidence: `${what} (${proof})` },
      })),
    };
  }

  /** Repeatable. Resolves when nothing is read any more. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stop();
    await this.#done;
  }

  #start(): void {
    const ending = new AbortController();
    this.#ending = ending;
    this.#done = this.#done.then(() => this.#watch(ending.signal));
    this.#look();
  }

  /** Audits until the end. Never rejects. */
  async #watch(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    try {
      await watchCloud({
        ...{ ...this.#options, everyMs: EVERY_MS, signal },
        // The audit makes one more reading after it was told to end, which must not be shown when somebody asks later.
        onChange: (change) => {
          if (!signal.aborted) this.#take(change);
        },
        onReading: () => {
          if (!signal.aborted && this.#unread.size === 0) this.#readAtMs = this.#clock.now();
        },
      });
    } catch (error) {
      this.#logger.warn({ err: error }, "the audit for the dashboard cannot go on");
      if (signal.aborted) return;
      this.#notBeforeMs = this.#clock.monotonic() + FAILED_PAUSE_MS;
      this.#stop();
    }
  }

  /** Ends the audit when nobody has asked for a while. */
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
    this.#readAtMs = null;
    this.#broken.clear();
    this.#unread.clear();
  }

  #take(change: AuditChange): void {
    if (change.kind === "broken") this.#broken.set(keyOfViolation(change.violation), change.violation);
    else if (change.kind === "gone") this.#broken.delete(keyOfViolation(change.violation));
    else if (change.kind === "unread") this.#unread.add(change.source);
    else if (change.kind === "read") this.#unread.delete(change.source);
  }
}
