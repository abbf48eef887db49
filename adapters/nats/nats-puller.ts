import {
  createInbox,
  type Msg,
  type NatsConnection,
  type Subscription as NatsSubscription,
} from "@nats-io/transport-node";
import type { BusMessage, ConsumerName, Subscription } from "../../runtime/bus.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { Fifo } from "../../runtime/fifo.ts";
import { stoodStill } from "../../runtime/stood-still.ts";
import type { LinkUser, NatsLink } from "./nats-link.ts";
import { NatsMessage } from "./nats-message.ts";

/** A pull that is not filled after this time ends and is repeated. */
const pullExpiresMs = 30_000;
/** The server sends heartbeats at this interval while a pull waits. A new leader of the stream does not know the pull, and sends none. */
const heartbeatMs = 1_000;
/** After this time without any message from the server the pulls count as lost. */
const silenceMsMax = 3 * heartbeatMs;
/** How long the server may take to send the messages that it had begun to send. */
const drainMsMax = 2_000;
/** Pause after the server refused a pull (the consumer is gone, or there are too many pulls). */
const refusedPauseMs = 500;

/**
 * Takes messages of a pull consumer, and asks ahead so that the next messages are on their way while the last are worked on. Every message
 * is either asked for (`#requested`) or delivered and unanswered (`#out`), at most `maxInFlight` together, except that after pulls were lost, messages
 * that were under way for them may come in addition. An acknowledgement, a retry or
 * the end of an ack wait makes room to ask for more. Messages are asked for in lots, so that a busy consumer costs one pull for many
 * messages.
 */
export class NatsPuller implements Subscription, LinkUser {
  readonly #link: NatsLink;
  readonly #clock: Clock;
  readonly #pullSubject: string;
  readonly #maxInFlight: number;
  readonly #ackWaitMs: number;
  readonly #onMessage: (message: BusMessage) => void;
  readonly #onUnanswered: () => void;
  readonly #deadlines = new Fifo<{ readonly message: NatsMessage; readonly atMs: number }>();
  #connection: NatsConnection | undefined;
  #subscription: NatsSubscription | undefined;
  #inbox = "";
  #requested = 0;
  #out = 0;
  #pulls = 0;
  #heardMs = 0;
  #pausedUntilMs = 0;
  #refused = false;
  #stopped = false;
  #scheduled = false;
  #ackTimer: Timer | undefined;
  #watchTimer: Timer | undefined;

  constructor(options: {
    readonly link: NatsLink;
    readonly clock: Clock;
    readonly name: ConsumerName;
    readonly maxInFlight: number;
    readonly ackWaitMs: number;
    readonly onMessage: (message: BusMessage) => void;
    /** Called when the server refused a pull, because the consumer may have to be made again. */
    readonly onUnanswered: () => void;
  }) {
    this.#link = options.link;
    this.#clock = options.clock;
    this.#pullSubject = `$JS.API.CONSUMER.MSG.NEXT.${options.name.stream}.${options.name.consumer}`;
    this.#maxInFlight = options.maxInFlight;
    this.#ackWaitMs = options.ackWaitMs;
    this.#onMessage = options.onMessage;
    this.#onUnanswered = options.onUnanswered;
  }

  /** Resolves with true when the server has taken the first pull, or with false when this user may not pull there. */
  async start(): Promise<boolean> {
    this.#link.attach(this);
    this.#watch();
    // The refusal arrives before the answer to a flush, through an iterator that needs a turn of the event loop.
    await this.#connection?.flush().catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    return !this.#refused;
  }

  onUp(connection: NatsConnection): void {
    this.#connection = connection;
    this.#subscribe();
  }

  onDown(): void {
    this.#connection = undefined;
    this.#subscription = undefined;
    this.#requested = 0;
  }

  onNotPermitted(subject: string): void {
    if (subject === this.#pullSubject) this.#refused = true;
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#link.detach(this);
    this.#watchTimer?.cancel();
    this.#ackTimer?.cancel();
    const [connection, subscription] = [this.#connection, this.#subscription];
    this.#subscription = undefined;
    if (connection === undefined || subscription === undefined || subscription.isClosed()) return;
    // Messages that the server sent before it processed the unsubscription are still delivered, so that no message waits for the ack wait.
    // When the connection is being lost, the driver does not report that nothing more will come.
    await Promise.race([subscription.drain().catch(() => {}), connection.closed(), pause(this.#clock, drainMsMax)]);
  }

  /**
   * Subscribes to a new inbox. The server then drops the pulls that were sent under the previous inbox, so that nothing is counted twice.
   * Messages that are under way to the previous inbox are still taken, because otherwise they would come again only after their ack wait.
   */
  #subscribe(): void {
    // The driver takes several turns to close a lost connection, and throws when a caller subscribes meanwhile. `onDown` follows, and later
    // `onUp`.
    if (this.#connection === undefined || this.#connection.isClosed()) return;
    // It rejects when the connection is lost meanwhile.
    this.#subscription?.drain().catch(() => {});
    this.#requested = 0;
    this.#heardMs = this.#clock.monotonic();
    const inbox = createInbox(this.#link.inboxPrefix);
    this.#inbox = inbox;
    this.#subscription = this.#connection.subscribe(`${inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#onWire(message, inbox);
      },
    });
    this.#pull();
  }

  #onWire(message: Msg, inbox: string): void {
    const status = message.headers?.code ?? 0;
    if (inbox !== this.#inbox) {
      // The pull of this message is no longer counted. The server has answered, but it may not know the present pulls.
      if (status === 0) this.#take(message);
      return;
    }
    this.#heardMs = this.#clock.monotonic();
    if (status === 0) {
      this.#requested = Math.max(0, this.#requested - 1);
      this.#take(message);
    } else if (status !== 100) this.#endPull(message, status);
  }

  #take(message: Msg): void {
    this.#out += 1;
    const taken = new NatsMessage(message, this.#link, () => {
      this.#out -= 1;
      this.#schedulePull();
    });
    this.#deadlines.push({ message: taken, atMs: this.#clock.monotonic() + this.#ackWaitMs });
    this.#watchAckWaits();
    this.#schedulePull();
    this.#onMessage(taken);
  }

  /** A pull ended unfilled. Its size is the first part of its reply token. Newer servers also tell how much of it was left. */
  #endPull(message: Msg, status: number): void {
    const token = message.subject.slice(this.#inbox.length + 1);
    const left = message.headers?.get("Nats-Pending-Messages") || token.split("-")[0];
    this.#requested = Math.max(0, this.#requested - Number(left));
    if (status !== 408) {
      this.#pausedUntilMs = this.#heardMs + refusedPauseMs;
      this.#onUnanswered();
    }
    this.#schedulePull();
  }

  /** Runs once in a turn of the event loop, so that many acknowledgements make one pull. */
  #schedulePull(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#pull();
    });
  }

  #pull(): void {
    const connection = this.#connection;
    if (this.#stopped || connection === undefined || connection.isClosed()) return;
    const room = this.#maxInFlight - this.#out - this.#requested;
    // A small lot is asked for only when no other messages are on their way.
    if (room <= 0 || (this.#requested > 0 && room < this.#maxInFlight / 4)) return;
    // `#watch` pulls again after the pause.
    if (this.#clock.monotonic() < this.#pausedUntilMs) return;
    const body = { batch: room, expires: pullExpiresMs * 1e6, idle_heartbeat: heartbeatMs * 1e6 };
    this.#requested += room;
    this.#pulls += 1;
    connection.publish(this.#pullSubject, JSON.stringify(body), { reply: `${this.#inbox}.${room}-${this.#pulls}` });
  }

  /**
   * Repeats pulls that were lost silently, and ends pauses. The time for which this process itself stood still is no silence of the server, whose
   * messages wait to be read until the timers that are due have run.
   */
  #watch(): void {
    const dueMs = this.#clock.monotonic() + refusedPauseMs;
    this.#watchTimer = this.#clock.setTimer(refusedPauseMs, () => {
      const nowMs = this.#clock.monotonic();
      if (stoodStill(dueMs, nowMs)) this.#heardMs = nowMs;
      if (this.#requested > 0 && nowMs - this.#heardMs > silenceMsMax) this.#subscribe();
      else this.#pull();
      this.#watch();
    });
  }

  /**
   * When its ack wait has passed, an unanswered message no longer belongs to this puller, because the server may give it to another one.
   */
  #watchAckWaits(): void {
    const first = this.#deadlines.peek();
    if (this.#ackTimer !== undefined || first === undefined || this.#stopped) return;
    this.#ackTimer = this.#clock.setTimer(Math.max(1, first.atMs - this.#clock.monotonic()), () => {
      this.#ackTimer = undefined;
      const nowMs = this.#clock.monotonic();
      for (let next = this.#deadlines.peek(); next !== undefined; next = this.#deadlines.peek()) {
        if (next.atMs > nowMs && !next.message.left) break;
        this.#deadlines.shift();
        next.message.leave();
      }
      this.#watchAckWaits();
    });
  }
}

function pause(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(delayMs, resolve));
}
