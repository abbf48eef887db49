import type { Clock } from "../../runtime/clock.ts";
import type { NatsEvent } from "./nats-link.ts";

/** A refusal that is older than this says nothing about the present, since nothing was published after it. */
const freshMs = 30_000;
/** JetStream's error codes for a message that could not be stored for want of room. */
const noRoom: ReadonlySet<number> = new Set([
  // The account has reached its storage limit.
  10_002,
  // The server has reached its storage limit.
  10_023,
  // There is no storage left to reserve.
  10_047,
  // A write failed, or the stream is at its own limit.
  10_077,
]);

/** Whether JetStream's error code in the answer to a publish says that the server has no room to store the message. */
export function isNoRoom(errorCode: number | undefined): boolean {
  return errorCode !== undefined && noRoom.has(errorCode);
}

/**
 * Whether the server has room for messages, as far as publishes have shown.
 * Modes: **room** → (a publish is refused for want of room) **full** → (a publish is stored) **room**. `isFull` also forgets a refusal
 * after which nothing was published for a while.
 */
export class StoreRoom {
  readonly #clock: Clock;
  readonly #onEvent: (event: NatsEvent) => void;
  /** When a publish was refused last, or null when there is room. */
  #refusedMs: number | null = null;

  constructor(clock: Clock, onEvent: (event: NatsEvent) => void) {
    this.#clock = clock;
    this.#onEvent = onEvent;
  }

  get isFull(): boolean {
    return this.#refusedMs !== null && this.#clock.monotonic() - this.#refusedMs < freshMs;
  }

  refused(reason: string): void {
    const isNews = this.#refusedMs === null;
    this.#refusedMs = this.#clock.monotonic();
    if (isNews) this.#onEvent({ kind: "streams-full", reason });
  }

  stored(): void {
    if (this.#refusedMs === null) return;
    this.#refusedMs = null;
    this.#onEvent({ kind: "streams-have-room" });
  }
}
