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
   * Take messages of a durable consumer shared by all who name it. At most `maxInFlight` are out at a time; one that is
   * neither acknowledged nor retried within the consumer's ack wait is delivered again, to anybody. `onMessage` must not throw. Rejects with a
   * `BusError`: `not-permitted`, `no-stream` (no such stream or consumer), `closed`, `timeout`.
   */
  consume(
    consumer: ConsumerName,
    options: { readonly maxInFlight: number },
    onMessage: (message: BusMessage) => void,
  ): Promise<Subscription>;
  /**
   * Creates what is missing of the streams and their consumers and brings the rest up to the specs. Repeatable, and harmless
   * when several processes do it at once. Only the API tier's users may; others get `not-permitted`. From then on the bus keeps them in
   * being, also when the first try failed: after each reconnection, and whenever it notices that one is gone.
   */
  ensureStreams(specs: readonly StreamSpec[]): Promise<void>;
  /** Whether the streams that this bus keeps are there, as far as it knows at this moment. */
  streamState(): StreamState;
  /** Stops every subscription of this connection, sends what is buffered, disconnects. Repeatable. */
  close(): Promise<void>;
}

/**
 * `full`: the streams are there, and what was published of late was refused for want of room. `missing`: a server answers, and a stream or a
 * consumer is not there. `away`: no server can be reached.
 */
export type StreamState = "there" | "full" | "missing" | "away";

export interface PublishOptions {
  /** Names the message for deduplication. */
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
  /** 1 for the first delivery. */
  readonly deliveries: number;
  /** When the stream stored it, milliseconds since the epoch. */
  readonly storedAtMs: number;
  /** Done with it. Of `ack` and `retry` the first call counts. Lost with the connection: then it is delivered again. */
  ack(): void;
  /** Deliver again after `delayMs`. */
  retry(delayMs: number): void;
}

export interface Subscription {
  /** No new messages after this resolves; messages that are out may still be acknowledged. */
  stop(): Promise<void>;
}

/** A stream and its consumers, as the API tier sets them up. */
export interface StreamSpec {
  readonly stream: string;
  /** Exact subjects; each belongs to one stream. */
  readonly subjects: readonly string[];
  /**
   * `work`: a message goes when it is acknowledged, and at most one consumer takes them; `log`: every consumer sees every
   * message, which goes when it is older than `maxAgeMs`.
   */
  readonly retention: "work" | "log";
  /** Messages older than this are dropped. 0: kept until acknowledged (`work`) or for ever. */
  readonly maxAgeMs: number;
  /** Servers that keep a copy; what there is, or one, unless given. */
  readonly replicas?: number;
  readonly consumers: readonly ConsumerSpec[];
}

export interface ConsumerSpec {
  readonly name: string;
  readonly ackWaitMs: number;
  /** Most messages that are out over all who share the consumer. */
  readonly maxAckPending: number;
}

/** All that a user of the bus may do; the NATS configuration and the in-process twin both go by it. */
export interface BusPermissions {
  readonly publish: readonly string[];
  readonly consume: readonly ConsumerName[];
  readonly ensureStreams: boolean;
}

export type BusErrorCode =
  /** The user of this connection may not do this; repeating it is pointless. */
  | "not-permitted"
  /** No stream takes the subject, or the stream or consumer named does not exist (yet). */
  | "no-stream"
  /** The server did not answer in time; it may have done what it was asked. */
  | "timeout"
  /** The connection was closed by its owner. */
  | "closed"
  /** The server has no room to store the message. */
  | "full"
  /** The server answered with an error of its own; the message has it. */
  | "refused";

/** Every failure of a bus. */
export class BusError extends Error {
  readonly code: BusErrorCode;
  /** The subject, stream or consumer that it is about. */
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
