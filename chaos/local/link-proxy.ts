import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Way } from "../chaos-cloud.ts";
import { OneWay } from "./one-way.ts";

interface Pair {
  readonly there: OneWay;
  readonly back: OneWay;
  /** Connects to the serving side, once. */
  dial(): void;
  destroy(): void;
  /** Whether both ends are closed. Before that, a reset may still have to pass. */
  isOver(): boolean;
}

/**
 * A proxy on a port of 127.0.0.1 between the two ends of a TCP link.
 * - whole: everything passes at once, or `slow` milliseconds later
 * - cut: nothing passes that way, not even new connections, their ends and their resets. Data is kept until the link is healed, as TCP
 *   would retransmit it. When much is kept, the sender is blocked, as by a full TCP window.
 */
export class LinkProxy {
  readonly #server: Server;
  readonly #target: () => number | null;
  readonly #pairs = new Set<Pair>();
  #cut: Way | null = null;
  #delayMs = 0;

  private constructor(server: Server, target: () => number | null) {
    this.#server = server;
    this.#target = target;
    server.on("connection", (client) => this.#accept(client));
  }

  /** `target` returns the port of the serving side, and is called for each connection. It returns null when no server runs. */
  static async open(target: () => number | null): Promise<LinkProxy> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return new LinkProxy(server, target);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  cut(way: Way): void {
    this.#cut = way;
    this.#apply();
  }

  slow(delayMs: number): void {
    this.#delayMs = delayMs;
    this.#apply();
  }

  heal(): void {
    this.#cut = null;
    this.#delayMs = 0;
    this.#apply();
  }

  /** Breaks all connections and accepts no others. */
  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const pair of this.#pairs) pair.destroy();
    await closed;
  }

  #apply(): void {
    for (const pair of this.#pairs) this.#applyTo(pair);
  }

  #applyTo(pair: Pair): void {
    pair.there.set({ held: this.#cut === "both" || this.#cut === "there", delayMs: this.#delayMs });
    pair.back.set({ held: this.#cut === "both" || this.#cut === "back", delayMs: this.#delayMs });
    // Opening a TCP connection takes a message each way, so while one way is cut no connection is made.
    if (this.#cut === null) pair.dial();
  }

  #accept(client: Socket): void {
    const there = new OneWay();
    const back = new OneWay();
    there.from(client);
    back.to(client);
    let upstream: Socket | null = null;
    const pair: Pair = {
      there,
      back,
      dial: () => {
        if (upstream !== null || client.destroyed) return;
        const port = this.#target();
        if (port === null) return void client.resetAndDestroy();
        upstream = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
        back.from(upstream);
        there.to(upstream);
        upstream.once("close", () => this.#forget(pair));
      },
      destroy: () => {
        for (const way of [there, back]) way.stop();
        for (const socket of [client, upstream]) socket?.destroy();
      },
      isOver: () => client.destroyed && (upstream === null || upstream.destroyed),
    };
    client.once("close", () => this.#forget(pair));
    this.#pairs.add(pair);
    this.#applyTo(pair);
  }

  #forget(pair: Pair): void {
    if (!pair.isOver()) return;
    pair.destroy();
    this.#pairs.delete(pair);
  }
}
