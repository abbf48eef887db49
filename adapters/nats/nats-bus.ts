import {
  type AnswerQuestion,
  type Bus,
  BusError,
  type BusMessage,
  type ConsumerName,
  type PublishOptions,
  type StreamSpec,
  type StreamState,
  type Subscription,
} from "../../runtime/bus.ts";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import { managerOf } from "./ensure-streams.ts";
import { NatsAnswerer } from "./nats-answerer.ts";
import { toBusError } from "./nats-errors.ts";
import { type NatsEvent, NatsLink } from "./nats-link.ts";
import { NatsPublisher } from "./nats-publisher.ts";
import { NatsPuller } from "./nats-puller.ts";
import { StoreRoom } from "./store-room.ts";
import { StreamKeeper } from "./stream-keeper.ts";

export interface NatsBusOptions {
  /** `nats://user:password@host:port`, see `readNatsUrl`. Commas separate the servers of a cluster. */
  readonly url: string;
  /** How the server lists this connection. */
  readonly name: string;
  /** How long one call may take, 5,000 by default. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly onEvent?: (event: NatsEvent) => void;
}

/** A bus over NATS that tells when it is connected. */
export interface NatsBus extends Bus {
  /** Resolves when a connection is up. Rejects with a `BusError` `timeout`, or `closed`. */
  whenConnected(timeoutMs: number): Promise<void>;
}

/**
 * A connection to one NATS account. It connects in the background, and reconnects for ever after a loss. Calls that are made without a
 * connection wait for one as long as their own timeout allows. Throws when the URL is invalid.
 */
export function createNatsBus(options: NatsBusOptions): NatsBus {
  return new JetStreamBus(options);
}

class JetStreamBus implements NatsBus {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #link: NatsLink;
  readonly #publisher: NatsPublisher;
  readonly #keeper: StreamKeeper;
  readonly #room: StoreRoom;
  readonly #pullers = new Set<NatsPuller>();
  readonly #answerers = new Set<NatsAnswerer>();

  constructor(options: NatsBusOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#timeoutMs = options.timeoutMs ?? 5_000;
    const onEvent = options.onEvent ?? (() => {});
    this.#link = new NatsLink({ url: options.url, name: options.name, clock: this.#clock, onEvent });
    const parts = { link: this.#link, clock: this.#clock, timeoutMs: this.#timeoutMs };
    this.#keeper = new StreamKeeper({ ...parts, onEvent });
    this.#room = new StoreRoom(this.#clock, onEvent);
    this.#publisher = new NatsPublisher({ ...parts, room: this.#room, onUnanswered: () => this.#keeper.suspect() });
  }

  async whenConnected(timeoutMs: number): Promise<void> {
    await this.#link.whenUp(timeoutMs);
  }

  publish(subject: string, data: Uint8Array, options?: PublishOptions): Promise<void> {
    return this.#publisher.publish(subject, data, options);
  }

  async consume(
    name: ConsumerName,
    options: { readonly maxInFlight: number },
    onMessage: (message: BusMessage) => void,
  ): Promise<Subscription> {
    const ackWaitMs = await this.#ackWaitOf(name);
    if (this.#link.closed) throw new BusError("closed", name.consumer, "the connection is closed");
    const puller = new NatsPuller({
      link: this.#link,
      clock: this.#clock,
      name,
      maxInFlight: options.maxInFlight,
      ackWaitMs,
      onMessage,
      onUnanswered: () => this.#keeper.suspect(),
    });
    this.#pullers.add(puller);
    if (!(await puller.start())) {
      this.#pullers.delete(puller);
      await puller.stop();
      throw new BusError("not-permitted", `${name.stream}/${name.consumer}`, "this user may not read its messages");
    }
    return {
      stop: async () => {
        this.#pullers.delete(puller);
        await puller.stop();
      },
    };
  }

  async ask(subject: string, question: Uint8Array, { timeoutMs }: { readonly timeoutMs: number }): Promise<Uint8Array> {
    const connection = await this.#link.whenUp(timeoutMs);
    try {
      return (await connection.request(subject, question, { timeout: timeoutMs })).data;
    } catch (error) {
      throw toBusError(subject, error);
    }
  }

  async answer(subject: string, onQuestion: AnswerQuestion): Promise<Subscription> {
    if (this.#link.closed) throw new BusError("closed", subject, "the connection is closed");
    const answerer = new NatsAnswerer(this.#link, subject, onQuestion);
    this.#answerers.add(answerer);
    answerer.start();
    return {
      stop: async () => {
        this.#answerers.delete(answerer);
        answerer.stop();
      },
    };
  }

  async ensureStreams(specs: readonly StreamSpec[]): Promise<void> {
    const { replicas } = this.#link;
    await this.#keeper.ensure(replicas === undefined ? specs : specs.map((spec) => ({ replicas, ...spec })));
  }

  streamState(): StreamState {
    const { state } = this.#keeper;
    return state === "there" && this.#room.isFull ? "full" : state;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pullers].map((puller) => puller.stop()));
    this.#pullers.clear();
    for (const answerer of this.#answerers) answerer.stop();
    this.#answerers.clear();
    await Promise.all([this.#link.close(), this.#keeper.close()]);
    this.#publisher.close();
  }

  /** This request also finds out whether the consumer exists and may be used, before `consume` resolves. */
  async #ackWaitOf(name: ConsumerName): Promise<number> {
    const connection = await this.#link.whenUp(this.#timeoutMs);
    try {
      const manager = await managerOf(connection, this.#timeoutMs);
      const info = await manager.consumers.info(name.stream, name.consumer);
      return (info.config.ack_wait ?? 30e9) / 1e6;
    } catch (error) {
      throw toBusError(`${name.stream}/${name.consumer}`, error);
    }
  }
}
