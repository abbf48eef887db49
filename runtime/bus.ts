/**
 * Durable work queues and event streams: NATS JetStream, or the in-process twin. Delivery is at least once. A `Bus` is one
 * connection of one user; what that user may do is the server's decision, and a refusal is a `BusError`.
 */
export interface Bus {
  /**
   * Resolves when the stream has stored the message. Rejects with a `BusError` when the connection may not publish there
   * (`not-permitted`), no stream listens (`no-stream`), the server has no room (`full`, at once), or no answer came in time (`timeout`, `closed`: the message may or
   * may not be stored then). A second publish under the same `id` within two minutes is dropped by the stream.
   */
  publish(subject: string, data: Uint8Array, options?: PublishOptions): Promise<void>;
  /**
   * Takes messages of a durable consumer, which all connections that name it share. At most `maxInFlight` messages are out at a time. A
   * message that is neither acknowledged nor retried within the consumer's ack wait is delivered again, to any subscriber. `onMessage`
   * must not throw. Rejects with a `BusError`: `not-permitted`, `no-stream` (no such stream or consumer), `closed`, `timeout`.
   */
  consume(
    consumer: ConsumerName,
    options: { readonly maxInFlight: number },
    onMessage: (message: BusMessage) => void,
  ): Promise<Subscription>;
  /**
   * Creates the streams and consumers that are missing, and updates the others to match the specs. Repeatable, and harmless when several
   * processes do it at once. Only the API tier's users may do this; others get `not-permitted`. From then on, even when the first try
   * failed, the bus checks the streams after each reconnection and whenever it notices that one is gone, and creates them again.
   */
  ensureStreams(specs: readonly StreamSpec[]): Promise<void>;
  /**
   * Asks a question, which is not stored, and resolves with the answer of one of the subject's answerers. Rejects with a `BusError`:
   * `not-permitted`, `no-stream` (nobody answers there now), `timeout`, `closed`.
   */
  ask(subject: string, question: Uint8Array, options: { readonly timeoutMs: number }): Promise<Uint8Array>;
  /**
   * Answers questions on the subject. Each question goes to one of the subject's answerers. This continues after reconnections.
   * `onQuestion` must bound its own work, and a question for which it rejects gets no answer. Rejects with a `BusError` `closed`. A user
   * that may not answer there gets no questions.
   */
  answer(subject: string, onQuestion: AnswerQuestion): Promise<Subscription>;
  /** Whether the streams that this bus maintains exist, as far as the bus knows at this moment. */
  streamState(): StreamState;
  /** Stops every subscription of this connection, sends what is buffered, and disconnects. Repeatable. */
  close(): Promise<void>;
}

export type AnswerQuestion = (question: Uint8Array) => Promise<Uint8Array>;

/**
 * `there`: the streams exist. `full`: the streams exist, but recent messages were refused for lack of room. `missing`: a server answers,
 * but a stream or a consumer does not exist. `away`: no server can be reached.
 */
export type StreamState = "there" | "full" | "missing" | "away";

export interface PublishOptions {
  /** Message id, by which the stream drops duplicates. */
  readonly id?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ConsumerName {
  readonly stream: string;
  readonly consumer: string;
}

export interface BusMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** Number of deliveries so far; 1 for the first one. */
  readonly deliveries: number;
  /** When the stream stored the message, in milliseconds since the epoch. */
  readonly storedAtMs: number;
  /**
   * Acknowledges the message. Only the first call of `ack` or `retry` counts. When the connection is lost before the call is sent, the
   * message is delivered again.
   */
  ack(): void;
  /** Asks for another delivery after `delayMs`. */
  retry(delayMs: number): void;
}

export interface Subscription {
  /** No new messages arrive after this resolves. Messages already delivered may still be acknowledged. */
  stop(): Promise<void>;
}

/** A stream and its consumers, as the API tier sets them up. */
export interface StreamSpec {
  readonly stream: string;
  /** Exact subjects; each belongs to only one stream. */
  readonly subjects: readonly string[];
  /**
   * `work`: a message is removed when it is acknowledged, and at most one consumer takes each subject. `log`: every consumer sees every
   * message, and a message is removed when it is older than `maxAgeMs`.
   */
  readonly retention: "work" | "log";
  /** Messages older than this are dropped. 0 means that they are kept until acknowledged (`work`) or for ever (`log`). */
  readonly maxAgeMs: number;
  /** A `log` drops its oldest messages above this number. Without it, only `maxAgeMs` bounds the stream. The in-process twin has no such bound. */
  readonly maxMessages?: number;
  /** Number of servers that keep a copy. Without it, an existing stream keeps its number and a new one has 1. */
  readonly replicas?: number;
  readonly consumers: readonly ConsumerSpec[];
}

export interface ConsumerSpec {
  readonly name: string;
  readonly ackWaitMs: number;
  /** Maximum number of unacknowledged messages over all who share the consumer. */
  readonly maxAckPending: number;
}

/** The permissions of a user of the bus. Both the NATS configuration and the in-process twin are derived from it. */
export interface BusPermissions {
  readonly publish: readonly string[];
  readonly consume: readonly ConsumerName[];
  /** Subjects on which the user may ask questions, and those on which it may answer them. */
  readonly ask: readonly string[];
  readonly answer: readonly string[];
  readonly ensureStreams: boolean;
}

export type BusErrorCode =
  /** The user of this connection may not do this, so repeating it is pointless. */
  | "not-permitted"
  /** No stream takes the subject, nobody answers on it, or the named stream or consumer does not exist (yet). */
  | "no-stream"
  /** The server did not answer in time. The request may have been carried out. */
  | "timeout"
  /** The connection was closed by its owner. */
  | "closed"
  /** The server has no room to store the message. */
  | "full"
  /** The server answered with an error of its own, which the message quotes. */
  | "refused";

/** The error class of every failure of a bus. */
export class BusError extends Error {
  readonly code: BusErrorCode;
  /** The subject, stream or consumer that the failure is about. */
  readonly about: string;

  constructor(code: BusErrorCode, about: string, detail: string, options?: ErrorOptions) {
    super(`${about}: ${detail}`, options);
    this.name = "BusError";
    this.code = code;
    this.about = about;
  }
}

/** Whether trying the same again later can help. */
export const busErrorIsTransient: Readonly<Record<BusErrorCode, boolean>> = {
  "not-permitted": false,
  "no-stream": true,
  timeout: true,
  closed: false,
  full: true,
  refused: true,
};
