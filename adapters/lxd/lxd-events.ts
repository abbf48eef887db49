import { Agent, WebSocket } from "undici";
import type { Clock, Timer } from "../../runtime/clock.ts";

const RECONNECT_MS = 1_000;
const INSTANCE_PATH = /^\/1\.0\/(?:instances|containers)\/([^/?]+)/;

/**
 * Listens to the events of LXD's containers. Events are lost while there is no connection, so `onConnected` is called after each new
 * connection.
 */
export class LxdEvents {
  readonly #agent: Agent;
  readonly #clock: Clock;
  readonly #onEvent: (container: string) => void;
  readonly #onConnected: () => void;
  #socket: WebSocket | null = null;
  #timer: Timer | null = null;
  #closed = false;

  constructor(options: {
    readonly socketPath: string;
    readonly clock: Clock;
    readonly onEvent: (container: string) => void;
    readonly onConnected: () => void;
  }) {
    this.#agent = new Agent({ connect: { socketPath: options.socketPath }, connectTimeout: 5_000 });
    this.#clock = options.clock;
    this.#onEvent = options.onEvent;
    this.#onConnected = options.onConnected;
  }

  open(): void {
    const socket = new WebSocket("ws://lxd/1.0/events?type=lifecycle", { dispatcher: this.#agent });
    this.#socket = socket;
    socket.addEventListener("open", () => this.#onConnected());
    socket.addEventListener("message", ({ data }) => {
      const container = containerOf(data);
      if (container !== null) this.#onEvent(container);
    });
    // The error of a connection is followed by its end.
    socket.addEventListener("error", () => undefined);
    socket.addEventListener("close", () => {
      if (this.#closed) return;
      this.#timer = this.#clock.setTimer(RECONNECT_MS, () => this.open());
    });
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#socket?.close();
    this.#agent.destroy().catch(() => undefined);
  }
}

function containerOf(data: unknown): string | null {
  if (typeof data !== "string") return null;
  try {
    const { metadata } = JSON.parse(data) as { readonly metadata?: { readonly source?: string } };
    return INSTANCE_PATH.exec(metadata?.source ?? "")?.[1] ?? null;
  } catch {
    return null;
  }
}
