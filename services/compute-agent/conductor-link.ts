import { AGENT_STOPS, type ConductorDialer, type ConductorStream } from "../../core/agent/link.ts";
import type { AgentMessage, ConductorMessage, Hello } from "../../proto/gen/berth/agent.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { AgentEvents } from "./events.ts";

const REDIAL_MS_MIN = 50;
const REDIAL_MS_MAX = 1_000;
/** How long to wait for a welcome, which says how often the conductor wants a heartbeat. */
const WELCOME_WAIT_MS = 5_000;
/** A connection is closed after this many heartbeats without a message. */
const SILENT_HEARTBEATS = 3;

export type ConductorOrder = NonNullable<ConductorMessage["body"]>;

export interface LinkHandlers {
  /** Builds a new hello for each stream. */
  hello(): Hello;
  /** Called with every message except welcomes and heartbeats. */
  onOrder(order: ConductorOrder, from: ConductorStream): void;
  onWelcome(stream: ConductorStream): void;
  onLost(stream: ConductorStream): void;
}

interface LinkOptions {
  readonly dialer: ConductorDialer;
  readonly address: string;
  readonly clock: Clock;
  readonly events: AgentEvents;
  readonly handlers: LinkHandlers;
}

/**
 * The link to one conductor's address. It has four modes. Dialling: a stream is open and the hello is sent. Welcomed: heartbeats are sent,
 * and messages must arrive. Waiting: the next try is scheduled, after a delay that grows until a try succeeds. Stopped: nothing is dialled
 * again.
 */
export class ConductorLink {
  readonly #options: LinkOptions;
  #stream: ConductorStream | null = null;
  #welcomed = false;
  #heartbeatMs = 0;
  #heardAtMs = 0;
  #beatAtMs = 0;
  #timer: Timer | null = null;
  #redialMs = REDIAL_MS_MIN;
  #stopped = false;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get welcomed(): ConductorStream | null {
    return this.#welcomed ? this.#stream : null;
  }

  dial(): void {
    if (this.#stopped) return;
    const { dialer, address, handlers } = this.#options;
    const stream = dialer.dial(address);
    this.#stream = stream;
    this.#welcomed = false;
    stream.onMessages((messages) => this.#take(stream, messages));
    stream.onClose((reason) => this.#lost(stream, reason));
    stream.send({ body: { $case: "hello", value: handlers.hello() } });
    this.#setTimer(WELCOME_WAIT_MS, () => stream.close("no welcome"));
  }

  drop(reason: string): void {
    this.#stream?.close(reason);
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#stream?.close(AGENT_STOPS);
  }

  #take(stream: ConductorStream, messages: readonly ConductorMessage[]): void {
    if (stream !== this.#stream) return;
    this.#heardAtMs = this.#options.clock.monotonic();
    for (const { body } of messages) {
      if (body === undefined || body.$case === "heartbeat") continue;
      if (body.$case !== "welcome") {
        this.#options.handlers.onOrder(body, stream);
        continue;
      }
      this.#welcomed = true;
      this.#redialMs = REDIAL_MS_MIN;
      this.#heartbeatMs = Math.max(10, body.value.heartbeatMs);
      this.#options.events.welcomed(this.#options.address, body.value.conductorId);
      this.#options.handlers.onWelcome(stream);
      this.#setTimer(this.#heartbeatMs, () => this.#beat(stream));
    }
  }

  #beat(stream: ConductorStream): void {
    if (stream !== this.#stream || stream.closed) return;
    const nowMs = this.#options.clock.monotonic();
    // If this process itself stood still, the conductor's messages may be waiting to be read.
    if (nowMs - this.#beatAtMs > this.#heartbeatMs * 2) this.#heardAtMs = nowMs;
    this.#beatAtMs = nowMs;
    const silentMs = nowMs - this.#heardAtMs;
    if (silentMs > this.#heartbeatMs * SILENT_HEARTBEATS) {
      stream.close(`the conductor was silent for ${Math.round(silentMs)} ms`);
      return;
    }
    const heartbeat: AgentMessage = { body: { $case: "heartbeat", value: {} } };
    stream.send(heartbeat);
    this.#setTimer(this.#heartbeatMs, () => this.#beat(stream));
  }

  #lost(stream: ConductorStream, reason: string): void {
    if (stream !== this.#stream) return;
    const { address, events, handlers } = this.#options;
    const wasWelcomed = this.#welcomed;
    this.#stream = null;
    this.#welcomed = false;
    if (wasWelcomed) {
      if (this.#stopped) events.left(address);
      else events.lost(address, reason);
      handlers.onLost(stream);
    } else if (!this.#stopped) events.notWelcomed(address, reason);
    if (this.#stopped) return;
    const waitMs = this.#redialMs * (0.5 + Math.random() / 2);
    this.#redialMs = Math.min(REDIAL_MS_MAX, this.#redialMs * 2);
    this.#setTimer(waitMs, () => this.dial());
  }

  #setTimer(delayMs: number, run: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimer(delayMs, run);
  }
}
