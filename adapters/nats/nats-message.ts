import type { Msg } from "@nats-io/transport-node";
import type { BusMessage } from "../../runtime/bus.ts";
import type { NatsLink } from "./nats-link.ts";

const acknowledgement = new TextEncoder().encode("+ACK");
const noHeaders: Readonly<Record<string, string>> = Object.freeze({});

/** A message of a stream. Its metadata is in the reply subject, and is parsed only when it is needed. */
export class NatsMessage implements BusMessage {
  readonly #message: Msg;
  readonly #link: NatsLink;
  readonly #onLeft: () => void;
  #answered = false;
  #left = false;

  constructor(message: Msg, link: NatsLink, onLeft: () => void) {
    this.#message = message;
    this.#link = link;
    this.#onLeft = onLeft;
  }

  get subject(): string {
    return this.#message.subject;
  }

  get data(): Uint8Array {
    return this.#message.data;
  }

  get headers(): Readonly<Record<string, string>> {
    const headers = this.#message.headers;
    if (headers === undefined) return noHeaders;
    const record: Record<string, string> = {};
    for (const name of headers.keys()) {
      if (!name.startsWith("Nats-")) record[name] = headers.get(name);
    }
    return record;
  }

  get deliveries(): number {
    return Number(this.#replyPart(-5));
  }

  get storedAtMs(): number {
    return Math.floor(Number(this.#replyPart(-2)) / 1e6);
  }

  /** Called when the message no longer counts as out here. */
  get left(): boolean {
    return this.#left;
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#onLeft();
  }

  ack(): void {
    this.#answer(acknowledgement);
  }

  retry(delayMs: number): void {
    this.#answer(new TextEncoder().encode(`-NAK {"delay": ${Math.round(delayMs * 1e6)}}`));
  }

  /** Without a connection the answer is lost, and the message is delivered again. */
  #answer(word: Uint8Array): void {
    if (this.#answered) return;
    this.#answered = true;
    const connection = this.#link.connection;
    const reply = this.#message.reply;
    if (reply !== undefined && connection !== undefined && !connection.isClosed()) connection.publish(reply, word);
    this.leave();
  }

  /**
   * A part of `$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<stored,
   * ns>.<pending>[.<random>]`.
   */
  #replyPart(index: number): string {
    const parts = (this.#message.reply ?? "").split(".");
    // The form with a domain ends in a random token.
    return parts.at(parts.length > 11 ? index - 1 : index) ?? "";
  }
}
