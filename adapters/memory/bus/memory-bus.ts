import {
  type AnswerQuestion,
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
import type { MemoryQuestions } from "./memory-questions.ts";
import type { MemoryStream } from "./memory-stream.ts";

const noHeaders: Readonly<Record<string, string>> = Object.freeze({});
const stored = Promise.resolve();

/** The streams of a broker, as one connection uses them. */
interface BrokerStreams {
  readonly questions: MemoryQuestions;
  streamOf(subject: string): MemoryStream | undefined;
  streamNamed(name: string): MemoryStream | undefined;
  ensureStream(spec: StreamSpec): void;
}

/** One connection to a broker in memory, with the permissions of its user. */
export class MemoryBus implements Bus {
  readonly #broker: BrokerStreams;
  readonly #mayPublish: ReadonlySet<string> | undefined;
  readonly #mayConsume: ReadonlySet<string> | undefined;
  readonly #mayAsk: ReadonlySet<string> | undefined;
  readonly #mayAnswer: ReadonlySet<string> | undefined;
  readonly #mayEnsure: boolean;
  readonly #subscriptions = new Set<Subscription>();
  #closed = false;

  constructor(broker: BrokerStreams, permissions: BusPermissions | undefined) {
    this.#broker = broker;
    this.#mayPublish = permissions && new Set(permissions.publish);
    this.#mayConsume = permissions && new Set(permissions.consume.map(consumerKey));
    this.#mayAsk = permissions && new Set(permissions.ask);
    this.#mayAnswer = permissions && new Set(permissions.answer);
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
      throw new BusError("not-permitted", key, "this user may not read its messages");
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

  async ask(subject: string, question: Uint8Array, options: { readonly timeoutMs: number }): Promise<Uint8Array> {
    if (this.#closed) throw closedError(subject);
    if (this.#mayAsk?.has(subject) === false)
      throw new BusError("not-permitted", subject, "this user may not ask there");
    return this.#broker.questions.ask(subject, question, options.timeoutMs);
  }

  async answer(subject: string, onQuestion: AnswerQuestion): Promise<Subscription> {
    if (this.#closed) throw closedError(subject);
    const isPermitted = this.#mayAnswer?.has(subject) ?? true;
    const end = isPermitted ? this.#broker.questions.answer(subject, onQuestion) : () => undefined;
    const subscription: Subscription = {
      stop: async () => {
        this.#subscriptions.delete(subscription);
        end();
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
