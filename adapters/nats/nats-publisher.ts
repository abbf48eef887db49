import { createInbox, type Msg, type MsgHdrs, MsgHdrsImpl, type NatsConnection } from "@nats-io/transport-node";
import { BusError, type PublishOptions } from "../../runtime/bus.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { toBusError } from "./nats-errors.ts";
import type { LinkUser, NatsLink } from "./nats-link.ts";
import { isNoRoom, type StoreRoom } from "./store-room.ts";

/** Maximum number of published messages that may wait for their answers. One more is refused. */
const pendingMax = 100_000;
/**
 * Pause before a message that no server took is sent again. A stream has no leader between the loss of one and the election of the next.
 */
const leaderlessPauseMs = 200;
/** The code of "no responders", and of an answer of a server that is unavailable at the moment. */
const unavailable = 503;

interface Pending {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: MsgHdrs | undefined;
  readonly deadlineMs: number;
  /** Why no stream took the message when it was sent last. */
  refusal: BusError | undefined;
  resolve(): void;
  reject(error: BusError): void;
}

/**
 * Publishes into streams, with many answers outstanding. Each connection has one inbox, and an answer's subject tells which message it
 * belongs to. A message that is unanswered when the connection breaks, or that finds its stream without a leader, is sent again until its
 * time is up.
 */
export class NatsPublisher implements LinkUser {
  readonly #link: NatsLink;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #room: StoreRoom;
  readonly #onUnanswered: () => void;
  /** In the order of their deadlines, since all have the same timeout. */
  readonly #pending = new Map<string, Pending>();
  #nextToken = 0;
  #connection: NatsConnection | undefined;
  #inbox = "";
  #timer: Timer | undefined;
  #resendTimer: Timer | undefined;

  constructor(options: {
    readonly link: NatsLink;
    readonly clock: Clock;
    readonly timeoutMs: number;
    readonly room: StoreRoom;
    /** Called when no stream took a message, because the stream may have to be made again. */
    readonly onUnanswered: () => void;
  }) {
    this.#link = options.link;
    this.#clock = options.clock;
    this.#timeoutMs = options.timeoutMs;
    this.#room = options.room;
    this.#onUnanswered = options.onUnanswered;
    this.#link.attach(this);
  }

  publish(subject: string, data: Uint8Array, options: PublishOptions | undefined): Promise<void> {
    if (this.#link.closed) return Promise.reject(new BusError("closed", subject, "the connection is closed"));
    if (this.#pending.size >= pendingMax) {
      return Promise.reject(new BusError("refused", subject, `more than ${pendingMax} publishes wait for an answer`));
    }
    return new Promise((resolve, reject) => {
      const token = (this.#nextToken++).toString(36);
      const deadlineMs = this.#clock.monotonic() + this.#timeoutMs;
      const pending: Pending = {
        subject,
        data,
        headers: encodeHeaders(options),
        deadlineMs,
        refusal: undefined,
        resolve,
        reject,
      };
      this.#pending.set(token, pending);
      this.#watchDeadlines();
      this.#send(token, pending);
    });
  }

  onUp(connection: NatsConnection): void {
    this.#connection = connection;
    // The connection is already lost. `onUp` is called again with the next one.
    if (connection.isClosed()) return;
    const inbox = createInbox(this.#link.inboxPrefix);
    this.#inbox = inbox;
    connection.subscribe(`${inbox}.*`, {
      callback: (error, answer) => {
        if (error === null) this.#onAnswer(answer);
      },
    });
    for (const [token, pending] of this.#pending) this.#send(token, pending);
  }

  onDown(): void {
    this.#connection = undefined;
  }

  /**
   * The server names only the refused subject. The server always refuses a subject that it has refused once, so all messages to it are
   * rejected.
   */
  onNotPermitted(subject: string): void {
    for (const [token, pending] of this.#pending) {
      if (pending.subject !== subject) continue;
      this.#pending.delete(token);
      pending.reject(new BusError("not-permitted", subject, "this user may not publish there"));
    }
  }

  close(): void {
    this.#timer?.cancel();
    this.#resendTimer?.cancel();
    this.#timer = undefined;
    for (const pending of this.#pending.values()) {
      pending.reject(new BusError("closed", pending.subject, "the connection was closed before the answer came"));
    }
    this.#pending.clear();
    this.#link.detach(this);
  }

  #send(token: string, pending: Pending): void {
    const connection = this.#connection;
    // `onUp` sends the message later.
    if (connection === undefined || connection.isClosed()) return;
    pending.refusal = undefined;
    try {
      const reply = `${this.#inbox}.${token}`;
      connection.publish(
        pending.subject,
        pending.data,
        pending.headers === undefined ? { reply } : { reply, headers: pending.headers },
      );
    } catch (error) {
      this.#pending.delete(token);
      pending.reject(toBusError(pending.subject, error));
    }
  }

  #onAnswer(answer: Msg): void {
    const token = answer.subject.slice(this.#inbox.length + 1);
    const pending = this.#pending.get(token);
    if (pending === undefined) return;
    const error = errorOf(answer, pending.subject);
    if (error?.retry) {
      pending.refusal = error.refusal;
      this.#onUnanswered();
      this.#resendSoon();
      return;
    }
    this.#pending.delete(token);
    if (error?.refusal.code === "full") this.#room.refused(error.refusal.message);
    if (error === null) {
      this.#room.stored();
      pending.resolve();
    } else pending.reject(error.refusal);
  }

  /** Sends all messages that were refused since the last time again, with one timer. */
  #resendSoon(): void {
    this.#resendTimer ??= this.#clock.setTimer(leaderlessPauseMs, () => {
      this.#resendTimer = undefined;
      for (const [token, pending] of this.#pending) {
        if (pending.refusal === undefined) continue;
        this.#send(token, pending);
      }
    });
  }

  /** Uses one timer, for the oldest message, since the later ones have later deadlines. */
  #watchDeadlines(): void {
    if (this.#timer !== undefined) return;
    for (const oldest of this.#pending.values()) {
      this.#timer = this.#clock.setTimer(Math.max(1, oldest.deadlineMs - this.#clock.monotonic()), () => {
        this.#timer = undefined;
        this.#endOverdue();
        this.#watchDeadlines();
      });
      return;
    }
  }

  #endOverdue(): void {
    const nowMs = this.#clock.monotonic();
    for (const [token, pending] of this.#pending) {
      if (pending.deadlineMs > nowMs) return;
      this.#pending.delete(token);
      const late = () => new BusError("timeout", pending.subject, `no answer within ${this.#timeoutMs} ms`);
      pending.reject(pending.refusal ?? late());
    }
  }
}

/** JetStream's answer to a publish that it does not store. */
interface ApiFault {
  /** A status code like HTTP's. */
  readonly code?: number;
  /** JetStream's own code. */
  readonly err_code?: number;
  readonly description?: string;
}

/** Null when the stream has stored the message. `retry` means that another attempt may succeed. */
function errorOf(answer: Msg, subject: string): { readonly refusal: BusError; readonly retry: boolean } | null {
  if (answer.headers?.code === unavailable) {
    return { refusal: new BusError("no-stream", subject, "no stream takes this subject"), retry: true };
  }
  const { error } = answer.json<{ readonly error?: ApiFault }>();
  if (error === undefined) return null;
  const detail = error.description ?? "the stream refused the message";
  // Most of these errors have the code 503, too. But no room is made within the time of a publish, so its caller must not wait for it.
  if (isNoRoom(error.err_code)) return { refusal: new BusError("full", subject, detail), retry: false };
  const refusal = new BusError("refused", subject, detail);
  return { refusal, retry: error.code === unavailable };
}

function encodeHeaders(options: PublishOptions | undefined): MsgHdrs | undefined {
  if (options?.id === undefined && options?.headers === undefined) return undefined;
  const record: Record<string, string[]> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) record[name] = [value];
  if (options.id !== undefined) record["Nats-Msg-Id"] = [options.id];
  for (const [name, values] of Object.entries(record)) {
    const sendable = /^[!-9;-~]+$/.test(name) && !/[\r\n]/.test(values[0] as string);
    if (!sendable) throw new Error(`header ${JSON.stringify(name)} has a character that no header may have`);
  }
  return MsgHdrsImpl.fromRecord(record);
}
