import {
  type Bus,
  BusError,
  type BusMessage,
  type BusPermissions,
  type ConsumerName,
  type PublishOptions,
  type StreamSpec,
  type StreamState,
  type Subscription,
} from "../../../runtime/bus.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { MemoryStream } from "./memory-stream.ts";

/**
 * The in-process twin of a NATS account with JetStream: streams and consumers that live as long as this object. Every
 * connection to it is a `Bus`. Messages are handed over by reference, in microtasks; all time comes from the clock.
 */
export class MemoryBroker {
  readonly #clock: Clock;
  readonly #streams = new Map<string, MemoryStream>();
  readonly #bySubject = new Map<string, MemoryStream>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A connection that may do what `permissions` say; everything, when they are not given. */
  connect(permissions?: BusPermissions): Bus {
    return new MemoryBus(this, permissions);
  }

  /** Drops every message and timer. For the end of the process that holds it. */
  close(): void {
    for (const stream of this.#streams.values()) stream.close();
    this.#streams.clear();
    this.#bySubject.clear();
  }

  streamOf(subject: string): MemoryStream | undefined {
    return this.#bySubject.get(subject);
  }

  streamNamed(name: string): MemoryStream | undefined {
    return this.#streams.get(name);
  }

  ensureStream(spec: StreamSpec): void {
    for (const subject of spec.subjects) {
      const owner = this.#bySubject.get(subject);
      if (owner !== undefined && owner.spec.stream !== spec.stream) {
        throw new BusError("refused", spec.stream, `subject ${subject} belongs to stream ${owner.spec.stream}`);
      }
    }
    let stream = this.#streams.get(spec.stream);
    if (stream === undefined) {
      stream = new MemoryStream(this.#clock, spec);
      this.#streams.set(spec.stream, stream);
    } else {
      for (const subject of stream.spec.subjects) this.#bySubject.delete(subject);
      stream.update(spec);
    }
    for (const subject of spec.subjects) this.#bySubject.set(subject, stream);
  }
}

const noHeaders: Readonly<Record<string, string>> = Object.freeze({});
const stored = Promise.resolve();

class MemoryBus implements Bus {
  readonly #broker: MemoryBroker;
  readonly #mayPublish: ReadonlySet<string> | undefined;
  readonly #mayConsume: ReadonlySet<string> | undefined;
  readonly #mayEnsure: boolean;
  readonly #subscriptions = new Set<Subscription>();
  #closed = false;

  constructor(broker: MemoryBroker, permissions: BusPermissions | undefined) {
    this.#broker = broker;
    this.#mayPublish = permissions && new Set(permissions.publish);
    this.#mayConsume = permissions && new Set(permissions.consume.map(consumerKey));
    this.#mayEnsure = permissions?.ensureStreams ?? true;
  }

  publish(subject: string, data: Uint8Array, options?: PublishOptions): Promise<void> {
    if (this.#closed) return Promise.reject(closedError(subject));
    if (this.#mayPublish !== undefined && !this.#mayPublish.has(subject)) {
      return Promise.reject(new BusError("not-permitted", subject, "this user may not publish there"));
    }
    const stream = this.#broker.streamOf(subject);
    if (stream === undefined) return Promise.reject(new BusError("no-stream", subject, "no stream takes this subject"));
    stream.append(subject, data, options?.headers ?? noHeaders, options?.id);
    return stored;
  }

  async consume(
    name: ConsumerName,
    options: { readonly maxInFlight: number },
    onMessage: (message: BusMessage) => void,
  ): Promise<Subscription> {
    const key = consumerKey(name);
    if (this.#closed) throw closedError(key);
    if (this.#mayConsume !== undefined && !this.#mayConsume.has(key)) {
      throw new BusError("not-permitted", key, "this user may not take its messages");
    }
    const consumer = this.#broker.streamNamed(name.stream)?.consumer(name.consumer);
    if (consumer === undefined) throw new BusError("no-stream", key, "no such stream or consumer");
    const taker = consumer.subscribe(options.maxInFlight, onMessage);
    const subscription: Subscription = {
      stop: async () => {
        this.#subscriptions.delete(subscription);
        consumer.unsubscribe(taker);
      },
    };
    this.#subscriptions.add(subscription);
    return subscription;
  }

  async ensureStreams(specs: readonly StreamSpec[]): Promise<void> {
    const about = specs.map((spec) => spec.stream).join(", ");
    if (this.#closed) throw closedError(about);
    if (!this.#mayEnsure) throw new BusError("not-permitted", about, "this user may not create streams");
    for (const spec of specs) this.#broker.ensureStream(spec);
  }

  streamState(): StreamState {
    return this.#closed ? "away" : "there";
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const subscription of [...this.#subscriptions]) await subscription.stop();
  }
}

function consumerKey(name: ConsumerName): string {
  return `${name.stream}/${name.consumer}`;
}

function closedError(about: string): BusError {
  return new BusError("closed", about, "the connection is closed");
}
