import type { BusMessage, ConsumerSpec } from "../../../runtime/bus.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import { Fifo } from "../../../runtime/fifo.ts";
import type { StoredMessage } from "./stored-message.ts";

/** A subscriber that takes messages of a consumer. */
export interface Taker {
  readonly maxInFlight: number;
  readonly onMessage: (message: BusMessage) => void;
  out: number;
}

/**
 * A message on its way through a consumer.
 * - waiting: queued for delivery. It enters this state from the stream, after its ack wait has run out, or after a retry delay.
 * - out: delivered to a taker. `delivery` counts the deliveries, so that a late answer to an earlier delivery is ignored.
 * - delayed: a taker asked for a retry. The message still counts as pending.
 * - done: acknowledged.
 */
interface Entry {
  readonly message: StoredMessage;
  delivery: number;
  state: "waiting" | "out" | "delayed" | "done";
  taker: Taker | undefined;
}

/** A durable consumer of the in-process broker. One timer serves all ack waits, since they run out in the order of delivery. */
export class MemoryConsumer {
  readonly #clock: Clock;
  readonly #fresh = new Fifo<Entry>();
  readonly #again = new Fifo<Entry>();
  readonly #deadlines = new Fifo<{ readonly entry: Entry; readonly delivery: number; readonly atMs: number }>();
  readonly #delays = new Set<Timer>();
  #takers: Taker[] = [];
  #nextTaker = 0;
  #pending = 0;
  #scheduled = false;
  #ackTimer: Timer | undefined;
  #spec: ConsumerSpec;

  constructor(clock: Clock, spec: ConsumerSpec) {
    this.#clock = clock;
    this.#spec = spec;
  }

  update(spec: ConsumerSpec): void {
    this.#spec = spec;
    this.#schedule();
  }

  offer(message: StoredMessage): void {
    this.#fresh.push({ message, delivery: 0, state: "waiting", taker: undefined });
    this.#schedule();
  }

  subscribe(maxInFlight: number, onMessage: (message: BusMessage) => void): Taker {
    const taker: Taker = { maxInFlight, onMessage, out: 0 };
    this.#takers.push(taker);
    this.#schedule();
    return taker;
  }

  unsubscribe(taker: Taker): void {
    this.#takers = this.#takers.filter((other) => other !== taker);
  }

  close(): void {
    this.#ackTimer?.cancel();
    for (const delay of this.#delays) delay.cancel();
    this.#delays.clear();
    this.#takers = [];
    this.#fresh.clear();
    this.#again.clear();
    this.#deadlines.clear();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    while (this.#again.size + this.#fresh.size > 0) {
      const redelivery = this.#again.size > 0;
      // A message that is redelivered already counts as pending.
      if (!redelivery && this.#pending >= this.#spec.maxAckPending) return;
      const taker = this.#pickTaker();
      if (taker === undefined) return;
      const entry = (redelivery ? this.#again : this.#fresh).shift() as Entry;
      if (entry.state !== "waiting") continue;
      if (!redelivery) this.#pending += 1;
      this.#handOver(entry, taker);
    }
  }

  /** The next taker in turn that has room for a message. */
  #pickTaker(): Taker | undefined {
    for (let tried = 0; tried < this.#takers.length; tried += 1) {
      const taker = this.#takers[this.#nextTaker++ % this.#takers.length] as Taker;
      if (taker.out < taker.maxInFlight) return taker;
    }
    return undefined;
  }

  #handOver(entry: Entry, taker: Taker): void {
    entry.state = "out";
    entry.taker = taker;
    entry.delivery += 1;
    taker.out += 1;
    this.#deadlines.push({ entry, delivery: entry.delivery, atMs: this.#clock.monotonic() + this.#spec.ackWaitMs });
    this.#watchAckWaits();
    taker.onMessage(new MemoryMessage(this, entry));
  }

  /** An acknowledgement counts even when it comes after the ack wait, as in JetStream. */
  acknowledge(entry: Entry): void {
    if (entry.state === "done") return;
    this.#leaveTaker(entry);
    entry.state = "done";
    this.#pending -= 1;
    this.#schedule();
  }

  retry(entry: Entry, delivery: number, delayMs: number): void {
    if (entry.state !== "out" || entry.delivery !== delivery) return;
    this.#leaveTaker(entry);
    entry.state = "delayed";
    const timer = this.#clock.setTimer(delayMs, () => {
      this.#delays.delete(timer);
      if (entry.state === "delayed") this.#putBack(entry);
    });
    this.#delays.add(timer);
    this.#schedule();
  }

  #leaveTaker(entry: Entry): void {
    if (entry.taker !== undefined) entry.taker.out -= 1;
    entry.taker = undefined;
  }

  #putBack(entry: Entry): void {
    this.#leaveTaker(entry);
    entry.state = "waiting";
    this.#again.push(entry);
    this.#schedule();
  }

  #watchAckWaits(): void {
    const first = this.#deadlines.peek();
    if (this.#ackTimer !== undefined || first === undefined) return;
    this.#ackTimer = this.#clock.setTimer(Math.max(0, first.atMs - this.#clock.monotonic()), () => {
      this.#ackTimer = undefined;
      this.#endAckWaits();
    });
  }

  #endAckWaits(): void {
    const nowMs = this.#clock.monotonic();
    for (let first = this.#deadlines.peek(); first !== undefined; first = this.#deadlines.peek()) {
      const isOut = first.entry.state === "out" && first.entry.delivery === first.delivery;
      if (isOut && first.atMs > nowMs) break;
      this.#deadlines.shift();
      if (isOut) this.#putBack(first.entry);
    }
    this.#watchAckWaits();
  }
}

class MemoryMessage implements BusMessage {
  readonly #consumer: MemoryConsumer;
  readonly #entry: Entry;
  readonly deliveries: number;
  #answered = false;

  constructor(consumer: MemoryConsumer, entry: Entry) {
    this.#consumer = consumer;
    this.#entry = entry;
    this.deliveries = entry.delivery;
  }

  get subject(): string {
    return this.#entry.message.subject;
  }
  get data(): Uint8Array {
    return this.#entry.message.data;
  }
  get headers(): Readonly<Record<string, string>> {
    return this.#entry.message.headers;
  }
  get storedAtMs(): number {
    return this.#entry.message.storedAtMs;
  }

  ack(): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#consumer.acknowledge(this.#entry);
  }

  retry(delayMs: number): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#consumer.retry(this.#entry, this.deliveries, delayMs);
  }
}
