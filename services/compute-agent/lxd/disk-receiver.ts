import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { readJsonLine, writeJsonLine } from "../../../adapters/lxd/json-lines.ts";
import type { LxdClient } from "../../../adapters/lxd/lxd-client.ts";
import { openWebSocket } from "../../../adapters/lxd/open-web-socket.ts";
import { KEYED_TLS } from "../../../runtime/keyed-tls.ts";
import { openConnections } from "../../../runtime/open-connections.ts";
import { messageOf } from "../message-of.ts";
import type { LxdContainer } from "./lxd-container.ts";

/** The connections over which two LXDs migrate a container that does not run. */
export const MIGRATION_CHANNELS = ["control", "fs"] as const;

/** One connection that asks, one for each channel, and as many of an earlier transfer that is being ended. */
const CONNECTIONS_MAX = 8;
const HANDSHAKE_MS = 10_000;
/** How long a client may take to say what it wants. */
const ASK_MS = 10_000;
/** A connection over which nothing goes for this long is checked, so that a side that is gone is noticed. */
export const KEEP_ALIVE_MS = 15_000;

interface Reception {
  readonly operation: string;
  readonly secrets: Readonly<Record<string, string>>;
  /** Raised when the transfer of this operation ends. */
  readonly signal: AbortSignal;
}

/**
 * Waits for the disk of one container that moves here from another LXD, on a port of its own, which only the agent that knows the key can
 * use (TLS with a pre-shared key). A client first asks for the transfer. The answer is `ready`, and when the disk is here `received`, or `failed` with the
 * reason. When it is ready the client opens the channels of LXD's migration, of which each byte goes to this LXD. A
 * later client takes the place of an earlier one, which may be dead.
 */
export class DiskReceiver {
  readonly #client: LxdClient;
  readonly #socketPath: string;
  readonly #container: LxdContainer;
  readonly #server: Server;
  readonly #connections: ReadonlySet<Socket>;
  #reception: Reception | null = null;
  #call = new AbortController();
  /** Settles when the last transfer has ended, whatever its outcome. */
  #ended: Promise<void> = Promise.resolve();

  constructor(options: {
    readonly client: LxdClient;
    readonly socketPath: string;
    readonly container: LxdContainer;
    readonly key: string;
  }) {
    this.#client = options.client;
    this.#socketPath = options.socketPath;
    this.#container = options.container;
    const psk = Buffer.from(options.key, "hex");
    this.#server = createServer({
      ...KEYED_TLS,
      handshakeTimeout: HANDSHAKE_MS,
      pskCallback: (_socket, identity) => (identity === options.container.name ? psk : null),
    });
    this.#connections = openConnections(this.#server);
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.on("secureConnection", (socket) => void this.#serve(socket));
    // A client whose handshake failed sees that on its side of the connection.
    this.#server.on("tlsClientError", (_error, socket) => socket.destroy());
  }

  /** Begins to listen, at any free port if it is 0. Resolves with the port. Rejects when another process has it. */
  async listen({ host, port }: { readonly host: string; readonly port: number }): Promise<number> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends a transfer that is under way, and resolves when LXD works on it no longer. */
  async close(): Promise<void> {
    this.#call.abort(new Error("the container no longer waits for a disk"));
    if (this.#server.listening) this.#server.close();
    for (const socket of this.#connections) socket.destroy();
    await this.#ended;
  }

  async #serve(socket: TLSSocket): Promise<void> {
    socket.on("error", () => socket.destroy());
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.setTimeout(ASK_MS, () => socket.destroy());
    try {
      const { ask, orderId, name } = await readJsonLine(socket);
      socket.setTimeout(0);
      if (ask === "disk" && typeof orderId === "string") await this.#receive(socket, orderId);
      else if (ask === "channel" && typeof name === "string") await this.#openChannel(socket, name);
      else throw new Error("it asks for something that this agent does not know");
    } catch (error) {
      if (!socket.destroyed) writeJsonLine(socket, { state: "failed", reason: messageOf(error) });
      socket.end();
    }
  }

  /** The earlier transfer ends before the next one begins, since LXD works on one at a time. */
  async #receive(socket: TLSSocket, orderId: string): Promise<void> {
    this.#call.abort(new Error("another transfer has taken the place of this one"));
    const call = new AbortController();
    this.#call = call;
    socket.once("close", () => call.abort(new Error("the source's agent has closed the connection")));
    const before = this.#ended;
    const transfer = before.then(() => this.#transfer(socket, orderId, call.signal));
    this.#ended = transfer.catch(() => undefined);
    await transfer;
    writeJsonLine(socket, { state: "received" });
    socket.end();
  }

  async #transfer(socket: Duplex, orderId: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const operation = await this.#container.beginReceiving(orderId, signal);
    if (operation === null) return;
    const secrets = operation.metadata as Readonly<Record<string, string>>;
    this.#reception = { operation: operation.id, secrets, signal };
    try {
      writeJsonLine(socket, { state: "ready" });
      // LXD would call a cancelled migration over while it still writes. One whose connections end, or are not opened within 10 s, ends by itself.
      await this.#client.waitFor(operation);
    } finally {
      this.#reception = null;
    }
    await this.#container.endReceiving(orderId);
  }

  async #openChannel(socket: TLSSocket, name: string): Promise<void> {
    const reception = this.#reception;
    const secret = MIGRATION_CHANNELS.some((channel) => channel === name) ? reception?.secrets[name] : undefined;
    if (reception === null || secret === undefined)
      throw new Error(`it has no connection "${name.slice(0, 20)}" to open`);
    const path = `/1.0/operations/${reception.operation}/websocket?secret=${secret}`;
    const own = await openWebSocket(this.#socketPath, path);
    // Not that of the present call: another client may have taken over since.
    const { signal } = reception;
    const end = () => own.destroy();
    if (signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
    writeJsonLine(socket, { state: "open" });
    await pipeline(socket, own, socket)
      .catch(() => undefined)
      .finally(() => signal.removeEventListener("abort", end));
    socket.destroy();
  }
}
