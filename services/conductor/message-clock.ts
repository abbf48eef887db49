import type { Clock } from "../../runtime/clock.ts";

/** Why a message is not fresh: it has waited for long, or seems to come from the future, since the clock of NATS is ahead. */
export type MessageMisfit = "old" | "future";

/** So many messages in a row, over at least so long, are older than allowed before the clocks are suspected: a restart or a stall leaves old ones, too. */
const OLD_IN_A_ROW = 10;
const OLD_FOR_MS = 30_000;
/** The clocks agree again when no message has been off for so long. So clocks that differ by just about the limit give few log lines. */
const AGREE_AFTER_MS = 60_000;

export interface MessageClockEvents {
  toldUnusable(reason: MessageMisfit): void;
  clocksDiffer(aheadMs: number): void;
  clocksAgree(): void;
}

/**
 * Judges by the time that NATS gave a message whether the message is fresh, and tells operators when the clocks of NATS and of this machine differ: builds would
 * only begin later, and nobody would learn why.
 */
export class MessageClock {
  readonly #clock: Clock;
  readonly #events: MessageClockEvents;
  readonly #freshMs: number;
  /** In which direction the clocks differed at the last warning: 1 when this machine's clock was ahead, -1 when NATS's was, 0 when they agree. */
  #warnedOf = 0;
  /** When a message was last off, by the monotonic clock. */
  #offAtMs = Number.NEGATIVE_INFINITY;
  #oldInARow = 0;
  #oldSinceMs = 0;
  #leastAgeMs = 0;

  /** A message is fresh when its time differs from the clock's by at most `freshMs`. */
  constructor(clock: Clock, events: MessageClockEvents, freshMs: number) {
    this.#clock = clock;
    this.#events = events;
    this.#freshMs = freshMs;
  }

  /** Whether a message that NATS stored at this time is fresh. Call it once for each message that nobody has had before. */
  isFresh(storedAtMs: number): boolean {
    const ageMs = this.#clock.now() - storedAtMs;
    const nowMs = this.#clock.monotonic();
    if (Math.abs(ageMs) <= this.#freshMs) {
      this.#oldInARow = 0;
      if (this.#warnedOf !== 0 && nowMs - this.#offAtMs >= AGREE_AFTER_MS) {
        this.#warnedOf = 0;
        this.#events.clocksAgree();
      }
      return true;
    }
    this.#offAtMs = nowMs;
    this.#events.toldUnusable(ageMs < 0 ? "future" : "old");
    if (ageMs < 0) {
      this.#oldInARow = 0;
      this.#warn(ageMs);
    } else this.#countOld(ageMs, nowMs);
    return false;
  }

  #countOld(ageMs: number, nowMs: number): void {
    if (this.#oldInARow === 0) {
      this.#oldSinceMs = nowMs;
      this.#leastAgeMs = ageMs;
    }
    this.#oldInARow += 1;
    this.#leastAgeMs = Math.min(this.#leastAgeMs, ageMs);
    if (this.#oldInARow >= OLD_IN_A_ROW && nowMs - this.#oldSinceMs >= OLD_FOR_MS) this.#warn(this.#leastAgeMs);
  }

  /** A clock that was set right by too much is off in the other direction, of which the last warning says nothing. */
  #warn(aheadMs: number): void {
    const direction = Math.sign(aheadMs);
    if (this.#warnedOf === direction) return;
    this.#warnedOf = direction;
    this.#events.clocksDiffer(aheadMs);
  }
}
