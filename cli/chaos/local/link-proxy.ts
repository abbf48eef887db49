import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Way } from "../chaos-cloud.ts";
import { OneWay } from "./one-way.ts";

interface Pair {
  readonly there: OneWay;
  readonly back: OneWay;
  /** Connects to who serves, once. */
  dial(): void;
  destroy(): void;
  /** Both ends are closed; before that a break may still have to pass. */
  isOver(): boolean;
}

/**
 * Stands between two ends of a TCP link on a port of 127.0.0.1 and passes on what comes, late or not at all when told so.
 * - whole: everything passes at once, or `slow` later
 * - cut: nothing passes that way, connections, their ends and their breaks included; what comes is kept (and once that is a
 *   lot the sender is held up, as by a full window) until the link is healed: TCP loses nothing that is sent again
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

  /** `target`: the port of who serves, asked anew for each connection; null: nobody does. */
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

  /** All connections break, and no others come. */
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
    // A connection takes a message each way before anything else passes.
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
