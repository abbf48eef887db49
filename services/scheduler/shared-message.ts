import { requestAckWaitMs } from "../../adapters/nats/streams.ts";
import type { BusMessage } from "../../runtime/bus.ts";

const RETRY_MS_MIN = 200;
const RETRY_MS_MAX = 10_000;

/**
 * A message of the queue, which may stand for several pieces of work. It is answered when each of them has ended or was left: acknowledged
 * if all were done, and otherwise delivered again, also for those that were done, whose rows say so.
 */
export class SharedMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly deliveries: number;
  readonly #message: BusMessage;
  readonly #expiresMs: number;
  #open: number;
  #retryMs: number | null = null;
  #isOthers = false;

  /** `works` is how many pieces of work the message stands for, and `nowMs` the monotonic time of its delivery. */
  constructor(message: BusMessage, works: number, nowMs: number) {
    // A message of NATS parses these at each access.
    this.headers = message.headers;
    this.deliveries = message.deliveries;
    this.#message = message;
    this.#expiresMs = nowMs + requestAckWaitMs;
    this.#open = works;
  }

  /**
   * Returns false until the ack wait is over. After that, leaves one piece of the work and returns true, because the bus delivers the message
   * again, and work that was not begun belongs to that delivery. Then the message gets no answer, which would disturb that delivery.
   */
  leaveIfExpired(nowMs: number): boolean {
    if (nowMs < this.#expiresMs) return false;
    this.#isOthers = true;
    this.#end();
    return true;
  }

  /** One piece of the work has ended, or was put off in its row. */
  done(): void {
    this.#end();
  }

  /** One piece of the work could be neither carried on nor put off. */
  failed(): void {
    this.#retryMs = Math.max(this.#retryMs ?? 0, retryMs(this.deliveries));
    this.#end();
  }

  /** One piece of the work was not begun. */
  left(): void {
    this.#retryMs ??= 0;
    this.#end();
  }

  #end(): void {
    this.#open -= 1;
    if (this.#open > 0 || this.#isOthers) return;
    if (this.#retryMs === null) this.#message.ack();
    else this.#message.retry(this.#retryMs);
  }
}

function retryMs(deliveries: number): number {
  return Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(deliveries - 1, 10));
}
