import type { BusMessage, StreamSpec } from "../../../runtime/bus.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import { Fifo } from "../../../runtime/fifo.ts";
import { MemoryConsumer } from "./memory-consumer.ts";
import type { StoredMessage } from "./stored-message.ts";

/** How long a stream remembers the ids of messages. This is JetStream's default. */
const dedupWindowMs = 120_000;

/**
 * One stream of the in-process broker. A `work` stream keeps nothing itself: its only consumer holds each message until it is acknowledged,
 * and messages wait here until that consumer exists. A `log` keeps messages younger than `maxAgeMs` for consumers that are added later.
 */
export class MemoryStream {
  readonly #clock: Clock;
  readonly #kept = new Fifo<StoredMessage>();
  readonly #ids = new Map<string, number>();
  readonly #consumers = new Map<string, MemoryConsumer>();
  #spec: StreamSpec;
  #sequence = 0;
  #purge: Timer | undefined;

  constructor(clock: Clock, spec: StreamSpec) {
    this.#clock = clock;
    this.#spec = spec;
    this.update(spec);
  }

  get spec(): StreamSpec {
    return this.#spec;
  }

  consumer(name: string): MemoryConsumer | undefined {
    return this.#consumers.get(name);
  }

  update(spec: StreamSpec): void {
    if (spec.retention === "work" && spec.consumers.length > 1) {
      throw new Error(`stream ${spec.stream} is a work queue, so only one consumer may take its messages`);
    }
    this.#spec = spec;
    for (const consumerSpec of spec.consumers) {
      const present = this.#consumers.get(consumerSpec.name);
      if (present !== undefined) {
        present.update(consumerSpec);
        continue;
      }
      const consumer = new MemoryConsumer(this.#clock, consumerSpec);
      this.#consumers.set(consumerSpec.name, consumer);
      this.#dropOld();
      for (const message of this.#kept) consumer.offer(message);
      if (spec.retention === "work") this.#kept.clear();
    }
  }

  append(subject: string, data: Uint8Array, headers: BusMessage["headers"], id: string | undefined): void {
    const storedAtMs = this.#clock.now();
    if (id !== undefined && !this.#rememberId(id, storedAtMs)) return;
    this.#sequence += 1;
    const message: StoredMessage = { sequence: this.#sequence, subject, data, headers, storedAtMs };
    if (this.#spec.retention === "log" || this.#consumers.size === 0) {
      this.#kept.push(message);
      this.#schedulePurge();
    }
    for (const consumer of this.#consumers.values()) consumer.offer(message);
  }

  close(): void {
    this.#purge?.cancel();
    for (const consumer of this.#consumers.values()) consumer.close();
    this.#kept.clear();
  }

  /** Returns false when the id was seen within the window. Ids are forgotten in the order in which they came. */
  #rememberId(id: string, nowMs: number): boolean {
    for (const [oldest, seenAtMs] of this.#ids) {
      if (nowMs - seenAtMs < dedupWindowMs) break;
      this.#ids.delete(oldest);
    }
    if (this.#ids.has(id)) return false;
    this.#ids.set(id, nowMs);
    return true;
  }

  /** Uses one timer, for the oldest message, so that an idle log empties too. */
  #schedulePurge(): void {
    const oldest = this.#kept.peek();
    if (this.#purge !== undefined || this.#spec.maxAgeMs === 0 || oldest === undefined) return;
    this.#purge = this.#clock.setTimer(Math.max(1, oldest.storedAtMs + this.#spec.maxAgeMs - this.#clock.now()), () => {
      this.#purge = undefined;
      this.#dropOld();
      this.#schedulePurge();
    });
  }

  #dropOld(): void {
    if (this.#spec.maxAgeMs === 0) return;
    const keepFromMs = this.#clock.now() - this.#spec.maxAgeMs;
    for (
      let oldest = this.#kept.peek();
      oldest !== undefined && oldest.storedAtMs <= keepFromMs;
      oldest = this.#kept.peek()
    ) {
      this.#kept.shift();
    }
  }
}
