import { connect, createServer, type Server, type Socket } from "node:net";

/** A relay in front of a server. It can be cut, as if the network or the server were gone, and mended. */
export class CutOff {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(target: { readonly host: string; readonly port: number }) {
    this.#server = createServer((client) => {
      if (this.#isCut) {
        client.destroy();
        return;
      }
      const upstream = connect(target);
      for (const [one, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        this.#sockets.add(one);
        one.pipe(other);
        one.on("error", () => other.destroy());
        one.on("close", () => {
          this.#sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  /** Starts a relay to the server of a URL. Resolves with the relay and the URL that leads through it. */
  static async before(url: string): Promise<{ readonly relay: CutOff; readonly url: string }> {
    const through = new URL(url);
    const relay = new CutOff({ host: through.hostname, port: Number(through.port) });
    await new Promise<void>((resolve) => relay.#server.listen(0, "127.0.0.1", resolve));
    through.hostname = "127.0.0.1";
    through.port = String((relay.#server.address() as { port: number }).port);
    return { relay, url: through.href };
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#isCut = false;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
