/** Durable work queues and event streams: NATS JetStream, or the in-process twin. Delivery is at least once. */
export interface Bus {
  /**
   * Resolves when the stream has stored the message. Rejects when the connection may not publish there, or no answer
   * came in time: the message may or may not be stored then. A second publish under the same `id` within two minutes is
   * dropped by the stream.
   */
  publish(subject: string, data: Uint8Array, options?: { readonly id?: string; readonly headers?: Readonly<Record<string, string>> }): Promise<void>;
  /**
   * Take messages of a durable consumer shared by all who name it. At most `maxInFlight` are out at a time; one that is
   * neither acknowledged nor retried within the consumer's ack wait is delivered again, to anybody.
   */
  consume(consumer: ConsumerName, options: { readonly maxInFlight: number }, onMessage: (message: BusMessage) => void): Promise<Subscription>;
  close(): Promise<void>;
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
  readonly subjects: readonly string[];
  /** `work`: a message goes when it is acknowledged; `log`: when it is older than `maxAgeMs`. */
  readonly retention: "work" | "log";
  readonly maxAgeMs: number;
  readonly consumers: readonly { readonly name: string; readonly ackWaitMs: number; readonly maxAckPending: number }[];
}
