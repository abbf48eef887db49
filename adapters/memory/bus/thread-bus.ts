import type { MessagePort } from "node:worker_threads";
import {
  type AnswerQuestion,
  type Bus,
  BusError,
  type BusErrorCode,
  type BusMessage,
  type ConsumerName,
  type PublishOptions,
  type StreamSpec,
  type StreamState,
  type Subscription,
} from "../../../runtime/bus.ts";
import { TurnQueue } from "../../../runtime/turn-queue.ts";
import { PassedQuestions } from "./passed-questions.ts";

/** The calls that another thread sends to a bus. */
type Call =
  | { readonly kind: "publish"; readonly subject: string; readonly data: Uint8Array; readonly options: PublishOptions }
  | { readonly kind: "consume"; readonly consumer: ConsumerName; readonly maxInFlight: number }
  | { readonly kind: "ask"; readonly subject: string; readonly data: Uint8Array; readonly timeoutMs: number }
  | { readonly kind: "answer"; readonly subject: string }
  | { readonly kind: "stop"; readonly subscription: number }
  | { readonly kind: "ensureStreams"; readonly specs: readonly StreamSpec[] }
  | { readonly kind: "close" };
type Asked =
  | { readonly kind: "call"; readonly id: number; readonly call: Call }
  | { readonly kind: "answered"; readonly number: number; readonly data: Uint8Array }
  /** The question gets no answer. */
  | { readonly kind: "unanswered"; readonly number: number }
  | { readonly kind: "ack"; readonly number: number }
  | { readonly kind: "retry"; readonly number: number; readonly delayMs: number };

/** The answers to these calls, and the delivered messages. A subscription is identified by the number of the call that opened it. */
type Told =
  | { readonly kind: "done"; readonly id: number; readonly data?: Uint8Array }
  | { readonly kind: "question"; readonly subscription: number; readonly number: number; readonly data: Uint8Array }
  | { readonly kind: "failed"; readonly id: number; readonly failure: Failure }
  | { readonly kind: "message"; readonly subscription: number; readonly number: number; readonly message: Delivered };
type Delivered = Pick<BusMessage, "subject" | "data" | "headers" | "deliveries" | "storedAtMs">;
interface Failure {
  readonly code: BusErrorCode;
  readonly about: string;
  readonly detail: string;
}

/**
 * Lets a `ThreadBus` at the other end of the port use the bus. From then on that `ThreadBus` owns the bus, which closes together with it,
 * or when its thread dies.
 */
export function serveBus(bus: Bus, port: MessagePort): void {
  const told = new TurnQueue<Told>((words) => port.postMessage(words));
  const out = new Map<number, BusMessage>();
  const questions = new PassedQuestions();
  const subscriptions = new Map<number, Subscription>();
  let delivered = 0;
  const passOn = (subscription: number, data: Uint8Array) =>
    questions.pass((number) => told.add({ kind: "question", subscription, number, data: exact(data) }));
  const carryOut = async (id: number, call: Call): Promise<Uint8Array | undefined> => {
    if (call.kind === "ask") return bus.ask(call.subject, call.data, { timeoutMs: call.timeoutMs });
    await carryOutUnanswered(id, call);
    return undefined;
  };
  const carryOutUnanswered = async (id: number, call: Exclude<Call, { readonly kind: "ask" }>): Promise<void> => {
    if (call.kind === "publish") return bus.publish(call.subject, call.data, call.options);
    if (call.kind === "ensureStreams") return bus.ensureStreams(call.specs);
    if (call.kind === "stop") {
      const subscription = subscriptions.get(call.subscription);
      subscriptions.delete(call.subscription);
      return subscription?.stop();
    }
    if (call.kind === "close") return bus.close();
    if (call.kind === "answer") {
      subscriptions.set(id, await bus.answer(call.subject, (question) => passOn(id, question)));
      return;
    }
    const { consumer, maxInFlight } = call;
    const subscription = await bus.consume(consumer, { maxInFlight }, (message) => {
      delivered += 1;
      out.set(delivered, message);
      told.add({ kind: "message", subscription: id, number: delivered, message: deliveredOf(message) });
    });
    subscriptions.set(id, subscription);
  };
  port.on("message", (words: readonly Asked[]) => {
    for (const asked of words) {
      if (asked.kind === "call") {
        carryOut(asked.id, asked.call).then(
          (data) => told.add({ kind: "done", id: asked.id, ...(data !== undefined && { data: exact(data) }) }),
          (error: unknown) => told.add({ kind: "failed", id: asked.id, failure: failureOf(error) }),
        );
        continue;
      }
      if (asked.kind === "answered" || asked.kind === "unanswered") {
        questions.settle(asked.number, asked.kind === "answered" ? asked.data : null);
        continue;
      }
      const message = out.get(asked.number);
      out.delete(asked.number);
      if (asked.kind === "ack") message?.ack();
      else message?.retry(asked.delayMs);
    }
  });
  port.on("close", () => {
    out.clear();
    questions.close();
    bus.close().catch(() => undefined);
  });
}

/**
 * A connection to a bus in another thread. Every call becomes a message to `serveBus` at the port's other end; the calls of one turn of the
 * event loop travel together. The guarantees of that bus hold here. Bytes are copied on their way.
 */
export class ThreadBus implements Bus {
  readonly #port: MessagePort;
  readonly #asked: TurnQueue<Asked>;
  readonly #waiting = new Map<number, PromiseWithResolvers<Uint8Array | undefined>>();
  readonly #answering = new Map<number, AnswerQuestion>();
  readonly #consumers = new Map<number, (message: BusMessage) => void>();
  #calls = 0;
  #closing: Promise<void> | null = null;

  constructor(port: MessagePort) {
    this.#port = port;
    this.#asked = new TurnQueue((words) => port.postMessage(words));
    port.on("message", (words: readonly Told[]) => {
      for (const told of words) this.#hear(told);
    });
    // The port also closes when the thread at the other end dies.
    port.on("close", () => this.#end());
  }

  async publish(subject: string, data: Uint8Array, options: PublishOptions = {}): Promise<void> {
    await this.#call(subject, { kind: "publish", subject, data: exact(data), options });
  }

  async consume(
    consumer: ConsumerName,
    { maxInFlight }: { readonly maxInFlight: number },
    onMessage: (message: BusMessage) => void,
  ): Promise<Subscription> {
    const subscription = this.#calls + 1;
    // The first message may arrive before the answer to this call.
    this.#consumers.set(subscription, onMessage);
    try {
      await this.#call(consumer.consumer, { kind: "consume", consumer, maxInFlight });
    } catch (error) {
      this.#consumers.delete(subscription);
      throw error;
    }
    const stop = async (): Promise<void> => {
      await this.#call(consumer.consumer, { kind: "stop", subscription });
      this.#consumers.delete(subscription);
    };
    // When the connection ends, its subscriptions have ended, too.
    return { stop: () => (this.#closing === null ? stop() : this.#closing) };
  }

  async ask(subject: string, data: Uint8Array, { timeoutMs }: { readonly timeoutMs: number }): Promise<Uint8Array> {
    const answer = await this.#call(subject, { kind: "ask", subject, data: exact(data), timeoutMs });
    if (answer === undefined) throw new BusError("refused", subject, "the answer was empty");
    return answer;
  }

  async answer(subject: string, onQuestion: AnswerQuestion): Promise<Subscription> {
    const subscription = this.#calls + 1;
    this.#answering.set(subscription, onQuestion);
    try {
      await this.#call(subject, { kind: "answer", subject });
    } catch (error) {
      this.#answering.delete(subscription);
      throw error;
    }
    const stop = async (): Promise<void> => {
      await this.#call(subject, { kind: "stop", subscription });
      this.#answering.delete(subscription);
    };
    return { stop: () => (this.#closing === null ? stop() : this.#closing) };
  }

  async ensureStreams(specs: readonly StreamSpec[]): Promise<void> {
    await this.#call(specs.map(({ stream }) => stream).join(", "), { kind: "ensureStreams", specs });
  }

  /** The broker is in the same process, so its streams exist as long as the connection does. */
  streamState(): StreamState {
    return this.#closing === null ? "there" : "away";
  }

  close(): Promise<void> {
    this.#closing ??= this.#send({ kind: "close" }).then(
      () => this.#port.close(),
      () => undefined,
    );
    return this.#closing;
  }

  #end(): void {
    this.#closing ??= Promise.resolve();
    for (const { reject } of this.#waiting.values()) reject(new BusError("closed", "the bus", "was closed"));
    this.#waiting.clear();
    this.#consumers.clear();
    this.#answering.clear();
  }

  #call(about: string, call: Call): Promise<Uint8Array | undefined> {
    if (this.#closing !== null) return Promise.reject(new BusError("closed", about, "the connection is closed"));
    return this.#send(call);
  }

  #send(call: Call): Promise<Uint8Array | undefined> {
    this.#calls += 1;
    const waiting = Promise.withResolvers<Uint8Array | undefined>();
    this.#waiting.set(this.#calls, waiting);
    this.#asked.add({ kind: "call", id: this.#calls, call });
    return waiting.promise;
  }

  #hear(told: Told): void {
    if (told.kind === "message") {
      this.#consumers.get(told.subscription)?.(this.#messageOf(told.number, told.message));
      return;
    }
    if (told.kind === "question") {
      this.#hearQuestion(told);
      return;
    }
    const waiting = this.#waiting.get(told.id);
    this.#waiting.delete(told.id);
    if (told.kind === "done") waiting?.resolve(told.data);
    else waiting?.reject(new BusError(told.failure.code, told.failure.about, told.failure.detail));
  }

  #hearQuestion({ subscription, number, data }: Extract<Told, { readonly kind: "question" }>): void {
    const onQuestion = this.#answering.get(subscription);
    const answer =
      onQuestion?.(data) ??
      Promise.reject(new BusError("closed", "the bus", "no process answers questions any longer"));
    answer.then(
      (bytes) => this.#settle({ kind: "answered", number, data: exact(bytes) }),
      () => this.#settle({ kind: "unanswered", number }),
    );
  }

  #messageOf(number: number, message: Delivered): BusMessage {
    return {
      ...message,
      ack: () => this.#settle({ kind: "ack", number }),
      retry: (delayMs) => this.#settle({ kind: "retry", number, delayMs }),
    };
  }

  /** An acknowledgement after the connection has ended is lost, as with every bus. */
  #settle(asked: Asked): void {
    if (this.#closing === null) this.#asked.add(asked);
  }
}

function deliveredOf({ subject, data, headers, deliveries, storedAtMs }: BusMessage): Delivered {
  return { subject, data: exact(data), headers, deliveries, storedAtMs };
}

/** Copies a view of a larger buffer, because posting the view would transfer the whole buffer. */
function exact(data: Uint8Array): Uint8Array {
  return data.byteLength === data.buffer.byteLength ? data : new Uint8Array(data);
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof BusError)) return { code: "refused", about: "the bus", detail: String(error) };
  return { code: error.code, about: error.about, detail: error.message.slice(error.about.length + 2) };
}
