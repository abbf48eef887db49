import { BinaryWriter } from "@bufbuild/protobuf/wire";
import type { MessageStream } from "../../core/agent/link.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";
import { TurnQueue } from "../../runtime/turn-queue.ts";
import { FRAME_BYTES, QUEUED_MESSAGES_MAX } from "./channel-options.ts";

/**
 * The part of a gRPC call that the stream needs, on the client's or the server's side. It accepts encoded frames and yields decoded ones.
 */
export interface FramedCall<In> {
  on(event: "data", handler: (frame: { readonly messages: readonly In[] }) => void): unknown;
  on(event: "drain", handler: () => void): unknown;
  /** Returns false when the buffer is full: the writer must wait for `drain`. */
  write(frame: Buffer): boolean;
}

/** Tag of field 1, length-delimited: `repeated … messages = 1` of both kinds of frame. */
const MESSAGES_TAG = 10;
/** Both kinds of frame, of messages that are encoded already. */
const FRAME = {
  encode(messages: readonly Uint8Array[], writer = new BinaryWriter()): BinaryWriter {
    for (const message of messages) writer.uint32(MESSAGES_TAG).bytes(message);
    return writer;
  },
};

/**
 * A MessageStream over one bidirectional gRPC call, for either side.
 * Modes: flowing (the messages of each turn are written at its end), congested (the call's buffer is full: messages wait until it drains,
 * and the stream closes when more than QUEUED_MESSAGES_MAX wait), closed (nothing goes in or out).
 */
export class GrpcStream<Out, In> implements MessageStream<Out, In> {
  readonly #call: FramedCall<In>;
  readonly #encode: (message: Out) => Uint8Array;
  readonly #hangUp: (reason: string) => void;
  readonly #turn: TurnQueue<Out>;
  #waiting: Out[] = [];
  #congested = false;
  #closed = false;
  #onMessages: (messages: readonly In[]) => void = () => {};
  #onClose: (reason: string) => void = () => {};

  constructor(options: {
    readonly call: FramedCall<In>;
    readonly encode: (message: Out) => Uint8Array;
    /** Ends the call towards the peer. */
    readonly hangUp: (reason: string) => void;
  }) {
    this.#call = options.call;
    this.#encode = options.encode;
    this.#hangUp = options.hangUp;
    this.#turn = new TurnQueue((messages) => this.#enqueue(messages));
    this.#call.on("data", (frame) => {
      if (!this.#closed) this.#onMessages(frame.messages);
    });
    this.#call.on("drain", () => {
      this.#congested = false;
      this.#write();
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  send(message: Out): void {
    if (!this.#closed) this.#turn.add(message);
  }

  onMessages(handler: (messages: readonly In[]) => void): void {
    this.#onMessages = handler;
  }

  onClose(handler: (reason: string) => void): void {
    this.#onClose = handler;
  }

  close(reason: string): void {
    if (this.#closed) return;
    this.ended(reason);
    this.#hangUp(reason);
  }

  /** Called when the call has ended, whichever side ended it. */
  ended(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#turn.clear();
    this.#waiting = [];
    queueMicrotask(() => this.#onClose(reason));
  }

  #enqueue(messages: Out[]): void {
    if (this.#closed) return;
    if (this.#waiting.length + messages.length > QUEUED_MESSAGES_MAX) {
      this.close("the other side reads too slowly");
      return;
    }
    if (this.#waiting.length === 0) this.#waiting = messages;
    else for (const message of messages) this.#waiting.push(message);
    this.#write();
  }

  #write(): void {
    let next = 0;
    while (!this.#closed && !this.#congested && next < this.#waiting.length) {
      const messages: Uint8Array[] = [];
      let bytes = 0;
      while (next < this.#waiting.length && bytes < FRAME_BYTES) {
        const encoded = this.#encode(this.#waiting[next] as Out);
        messages.push(encoded);
        bytes += encoded.length;
        next += 1;
      }
      const frame = encodeMessage(FRAME, messages);
      this.#congested = !this.#call.write(Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength));
    }
    if (!this.#closed) this.#waiting = next === this.#waiting.length ? [] : this.#waiting.slice(next);
  }
}
