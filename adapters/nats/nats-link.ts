import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { connect, type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import { BusError } from "../../runtime/bus.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { toBusError } from "./nats-errors.ts";
import { type NatsTarget, readNatsUrl } from "./nats-url.ts";
import { inboxPrefixOf } from "./streams.ts";

const reconnectDelayMsMin = 100;
const reconnectDelayMsMax = 2_000;
/** How long a closing owner waits until the buffered messages are sent. */
const flushMsMax = 1_000;

/** An event of a connection, for logs and counters. */
export type NatsEvent =
  | { readonly kind: "connected"; readonly server: string }
  /** Reported once for each outage, with the reason. Later failed attempts are not reported. */
  | { readonly kind: "disconnected"; readonly reason: string }
  /** The server refused a publish or a subscription because of the user's permissions. */
  | { readonly kind: "not-permitted"; readonly reason: string }
  /** A stream or a consumer that this bus keeps is missing or cannot be made. Reported once until all of them exist. */
  | { readonly kind: "streams-missing"; readonly reason: string }
  /** The missing streams and consumers were made again. */
  | { readonly kind: "streams-made"; readonly streams: readonly string[] }
  /** The server has no room for messages. Reported once until it has stored one again. */
  | { readonly kind: "streams-full"; readonly reason: string }
  | { readonly kind: "streams-have-room" };

/** A user of a link. The link calls it for every connection that comes and goes. */
export interface LinkUser {
  onUp(connection: NatsConnection): void;
  onDown(): void;
  onNotPermitted?(subject: string): void;
}

/**
 * One connection to a NATS account, kept up for ever.
 * - connecting: from the start, and whenever the connection broke. Attempts are repeated with a growing delay, and users have no
 *   connection.
 * - up: users have the connection.
 * - closed: the owner has closed the link. This state is never left.
 *
 * Every connection is a new one of the driver, so that users need to know only how to begin, not how to resume.
 */
export class NatsLink {
  readonly #target: NatsTarget;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #onEvent: (event: NatsEvent) => void;
  readonly #users = new Set<LinkUser>();
  readonly #waiting = new Set<() => void>();
  #connection: NatsConnection | undefined;
  #closed = false;
  #connecting = false;
  #delay: { timer: Timer; end: () => void } | undefined;
  readonly #running: Promise<void>;

  constructor(options: {
    readonly url: string;
    readonly name: string;
    readonly clock: Clock;
    readonly onEvent: (event: NatsEvent) => void;
  }) {
    this.#target = readNatsUrl(options.url);
    this.#name = options.name;
    this.#clock = options.clock;
    this.#onEvent = options.onEvent;
    this.#running = this.#run();
  }

  get connection(): NatsConnection | undefined {
    return this.#connection;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The number of copies of each stream that the URL asks for. */
  get replicas(): number | undefined {
    return this.#target.replicas;
  }

  /** The prefix under which this user may receive answers. */
  get inboxPrefix(): string {
    const { user } = this.#target;
    return user === undefined ? "_INBOX" : inboxPrefixOf(user);
  }

  /** Resolves with the connection when it is up. Rejects with `timeout` or `closed`. */
  async whenUp(timeoutMs: number): Promise<NatsConnection> {
    if (this.#connection === undefined && !this.#closed) {
      await new Promise<void>((resolve) => {
        const done = () => {
          timer.cancel();
          this.#waiting.delete(done);
          resolve();
        };
        const timer = this.#clock.setTimer(timeoutMs, done);
        this.#waiting.add(done);
      });
    }
    if (this.#closed) throw new BusError("closed", this.#name, "the connection is closed");
    if (this.#connection === undefined) {
      throw new BusError(
        "timeout",
        this.#name,
        `no connection to ${this.#target.servers.join(", ")} within ${timeoutMs} ms`,
      );
    }
    return this.#connection;
  }

  attach(user: LinkUser): void {
    this.#users.add(user);
    if (this.#connection !== undefined) user.onUp(this.#connection);
  }

  detach(user: LinkUser): void {
    this.#users.delete(user);
  }

  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#delay?.end();
      for (const done of [...this.#waiting]) done();
      const connection = this.#connection;
      if (connection !== undefined) {
        await Promise.race([connection.flush().catch(() => {}), this.#pause(flushMsMax)]);
        this.#delay?.end();
        await connection.close();
      }
    }
    // An attempt to connect to servers that do not answer takes long, so it is not awaited. A connection that it still opens is closed at
    // once.
    if (!this.#connecting) await this.#running;
  }

  async #run(): Promise<void> {
    let delayMs = reconnectDelayMsMin;
    let outageTold = false;
    while (!this.#closed) {
      try {
        this.#connecting = true;
        const connection = await this.#connect().finally(() => {
          this.#connecting = false;
        });
        // The owner may have closed the link in the meantime.
        if (this.#closed) await connection.close();
        else {
          delayMs = reconnectDelayMsMin;
          outageTold = false;
          this.#onEvent({ kind: "connected", server: connection.getServer() });
          const reason = await this.#serve(connection);
          if (this.#closed) return;
          outageTold = true;
          this.#onEvent({ kind: "disconnected", reason });
        }
      } catch (error) {
        if (this.#closed) return;
        if (!outageTold) this.#onEvent({ kind: "disconnected", reason: toBusError(this.#name, error).message });
        outageTold = true;
      }
      await this.#pause(delayMs);
      delayMs = Math.min(delayMs * 2, reconnectDelayMsMax);
    }
  }

  #connect(): Promise<NatsConnection> {
    const { servers, user, password, tls: files } = this.#target;
    // The driver passes options that its types do not name on to Node's TLS.
    const tls = files === undefined ? undefined : { ...files, checkServerIdentity: checkAnyOf(servers) };
    return connect({
      servers: [...servers],
      name: this.#name,
      ...(user === undefined ? {} : { user }),
      ...(password === undefined ? {} : { pass: password }),
      ...(tls === undefined ? {} : { tls }),
      inboxPrefix: this.inboxPrefix,
      reconnect: false,
      timeout: 5_000,
      pingInterval: 10_000,
      maxPingOut: 2,
      noAsyncTraces: true,
    });
  }

  /** Lends the connection to the users until it ends, and returns why it ended. */
  async #serve(connection: NatsConnection): Promise<string> {
    this.#connection = connection;
    void this.#watch(connection);
    for (const user of this.#users) user.onUp(connection);
    for (const done of [...this.#waiting]) done();
    const error = await connection.closed();
    this.#connection = undefined;
    for (const user of this.#users) user.onDown();
    return error instanceof Error ? error.message : "the connection was lost";
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type !== "error" || !(status.error instanceof PermissionViolationError)) continue;
      this.#onEvent({ kind: "not-permitted", reason: status.error.message });
      if (status.error.operation !== "publish") continue;
      for (const user of this.#users) user.onNotPermitted?.(status.error.subject);
    }
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel();
        this.#delay = undefined;
        resolve();
      };
      const timer = this.#clock.setTimer(delayMs, end);
      this.#delay = { timer, end };
    });
  }
}

/**
 * A server's certificate must be valid for one of the servers in the URL. They are interchangeable, and the driver does not tell which of
 * them it dials when the URL names it by its address.
 */
function checkAnyOf(servers: readonly string[]) {
  const hosts = servers.map((server) => new URL(`nats://${server}`).hostname.replace(/^\[|\]$/g, ""));
  return (_: string, certificate: PeerCertificate): Error | undefined => {
    const errors = hosts.map((host) => checkServerIdentity(host, certificate));
    return errors.includes(undefined) ? undefined : errors[0];
  };
}
