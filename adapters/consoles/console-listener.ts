import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { addressText } from "../../runtime/address-text.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { KEYED_TLS } from "../../runtime/keyed-tls.ts";
import { openConnections } from "../../runtime/open-connections.ts";
import type { HostPort } from "../../runtime/setting-kinds.ts";

/** A client that is expected once. */
export interface ExpectedClient {
  /** Names the client; it is the identity of the key. */
  readonly session: string;
  readonly key: Uint8Array;
  /** How long the client is waited for. */
  readonly lifetimeMs: number;
  /** Names the guest whose console the client reaches. A later client of the same guest takes the place of an earlier one. */
  readonly target: string;
  /** Opens the console of this guest. */
  connect(): Promise<Duplex>;
}

const WAITING_MAX = 200;
/** So that one guest's owner cannot keep the consoles of all other guests from being opened. */
const WAITING_OF_TARGET_MAX = 5;
const CLIENTS_MAX = 200;
const HANDSHAKE_MS = 10_000;
/** A client that neither reads nor types anything for this time is disconnected. */
const IDLE_MS = 3_600_000;

/**
 * Connects clients with the consoles of guests on this host. A client is admitted by a key of its own, once (TLS with pre-shared keys), so hosts need
 * no certificates. Both directions have the backpressure of TCP.
 */
export class ConsoleListener {
  readonly #options: { readonly clock: Clock; readonly listen: HostPort; readonly advertised: string | null };
  readonly #server: Server;
  readonly #connections: ReadonlySet<Socket>;
  readonly #waiting = new Map<string, { readonly client: ExpectedClient; readonly timer: Timer }>();
  readonly #sessions = new WeakMap<TLSSocket, string>();
  readonly #open = new Map<string, TLSSocket>();

  /** `advertised` is the host name or address at which clients reach this host; when it is null, that of `listen`. */
  constructor(options: {
    readonly clock: Clock;
    readonly listen: HostPort;
    readonly advertised: string | null;
    readonly handshakeMs?: number;
  }) {
    this.#options = options;
    this.#server = createServer({
      ...KEYED_TLS,
      handshakeTimeout: options.handshakeMs ?? HANDSHAKE_MS,
      pskCallback: (socket, session) => {
        this.#sessions.set(socket, session);
        return this.#waiting.get(session)?.client.key ?? null;
      },
    });
    this.#connections = openConnections(this.#server);
    this.#server.maxConnections = CLIENTS_MAX;
    this.#server.on("secureConnection", (socket) => void this.#admit(socket));
    // A client whose handshake failed sees that on its side of the connection.
    this.#server.on("tlsClientError", (_error, socket) => socket.destroy());
  }

  /** The address that clients are told. Known after `start`. */
  get address(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return addressText({ host: this.#options.advertised ?? address, port });
  }

  /** Rejects if it cannot listen. */
  async start(): Promise<void> {
    const { host, port } = this.#options.listen;
    this.#server.listen(port, host);
    await once(this.#server, "listening");
  }

  /** Waits for a client, and no longer for the oldest one of several for the same target. Throws an Error if too many are waited for. */
  expect(client: ExpectedClient): void {
    const same = [...this.#waiting.values()].filter((waiting) => waiting.client.target === client.target);
    if (same.length >= WAITING_OF_TARGET_MAX) this.#stopWaiting(same[0]?.client.session ?? "");
    if (this.#waiting.size >= WAITING_MAX) throw new Error(`${WAITING_MAX} clients are already waited for`);
    const timer = this.#options.clock.setTimer(client.lifetimeMs, () => this.#stopWaiting(client.session));
    this.#waiting.set(client.session, { client, timer });
  }

  async close(): Promise<void> {
    for (const { timer } of this.#waiting.values()) timer.cancel();
    this.#waiting.clear();
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#connections) socket.destroy();
    await closed;
  }

  #stopWaiting(session: string): void {
    this.#waiting.get(session)?.timer.cancel();
    this.#waiting.delete(session);
  }

  /** Two clients with one key may finish their handshakes together; the second one finds that the session is taken. */
  async #admit(socket: TLSSocket): Promise<void> {
    socket.on("error", () => socket.destroy());
    const waiting = this.#waiting.get(this.#sessions.get(socket) ?? "");
    if (waiting === undefined) {
      socket.destroy();
      return;
    }
    const { client } = waiting;
    this.#stopWaiting(client.session);
    this.#open.get(client.target)?.destroy();
    this.#open.set(client.target, socket);
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.setNoDelay(true);
    try {
      const console = await client.connect();
      await pipeline(socket, console, socket);
    } catch {
      // Either side has ended, which ends the other one, too.
      socket.destroy();
    } finally {
      if (this.#open.get(client.target) === socket) this.#open.delete(client.target);
    }
  }
}
