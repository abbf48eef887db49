import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Counter, Gauge, type Registry } from "prom-client";
import { createWebSocketStream, type WebSocket, WebSocketServer } from "ws";
import { consoleKeyOf, consoleTokenHash } from "../../adapters/consoles/console-key.ts";
import { dialConsole } from "../../adapters/consoles/dial-console.ts";
import type { ConsoleToken, ConsoleTokenStore } from "../../core/stores/api/console-token-store.ts";
import type { Clock } from "../../runtime/clock.ts";
import { endRefused } from "../../runtime/end-refused.ts";
import type { Logger } from "../../runtime/logger.ts";
import { openConnections } from "../../runtime/open-connections.ts";
import type { Service } from "../../runtime/service.ts";
import type { HostPort } from "../../runtime/setting-kinds.ts";
import { isAllowedOrigin, tokenOf } from "./read-upgrade.ts";
import { servePages } from "./serve-pages.ts";

/** Longest message that a client may type or paste at once. */
const MESSAGE_BYTES_MAX = 1 << 20;
/** A client that answers no ping for this time is gone. */
const PING_MS = 30_000;

export interface ConsoleProxyDeps {
  readonly tokens: Pick<ConsoleTokenStore, "takeToken">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: Registry;
}

export interface ConsoleProxySettings {
  readonly listen: HostPort;
  readonly allowedOrigins: readonly string[];
  /** A directory of web pages that are served beside the consoles. Null for none. */
  readonly web: string | null;
  readonly sessionsMax: number;
}

export interface ConsoleProxy extends Service {
  /** The address on which it listens. Known after `start`. */
  readonly address: HostPort;
}

/**
 * Serves clients of remote consoles: a WebSocket whose URL has a token (`/?token=…`) is connected with the guest's host. A token is used once. Bytes
 * are passed on as they are, with backpressure in both directions. The proxy keeps nothing, so any number of them may run.
 */
export function createConsoleProxy(deps: ConsoleProxyDeps, settings: ConsoleProxySettings): ConsoleProxy {
  const metrics = metricsOf(deps.registry, () => sockets.clients.size);
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
    // Clients of Nova's proxy name it; others name none.
    handleProtocols: (offered) => (offered.has("binary") ? "binary" : false),
  });
  const server = createServer(settings.web === null ? answerPlainly : servePages(settings.web));
  const connections = openConnections(server);
  /** Clients whose consoles are being opened. */
  let opening = 0;

  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const token = tokenOf(request);
    if (!isAllowedOrigin(request.headers, settings.allowedOrigins))
      return refuse(socket, 403, "Origin header does not match this host.");
    if (token === null) return refuse(socket, 403, "The URL has no token.");
    if (sockets.clients.size + opening >= settings.sessionsMax)
      return refuse(socket, 503, "Too many consoles are open. Try again later.");
    opening += 1;
    try {
      const guest = await reach({ ...deps, metrics }, token, socket);
      if (guest === null) return;
      // The proxy may have closed meanwhile. A destroyed socket does not announce its end again.
      if (socket.destroyed) return void guest.destroy();
      // A request that is no WebSocket's is refused by the library, and its connection closed.
      socket.once("close", () => guest.destroy());
      sockets.handleUpgrade(request, socket, head, (client) => join(client, guest, deps.clock));
    } finally {
      opening -= 1;
    }
  };
  server.on("upgrade", (request, socket, head) => {
    socket.on("error", () => socket.destroy());
    void upgrade(request, socket, head);
  });

  return {
    get address() {
      const { address, port } = server.address() as AddressInfo;
      return { host: address, port };
    },
    async start() {
      server.listen(settings.listen.port, settings.listen.host);
      await once(server, "listening");
    },
    async close() {
      for (const client of sockets.clients) client.close(1001, "the proxy is closing");
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      for (const socket of connections) socket.destroy();
      await closed;
    },
  };
}

/** Returns the connection to the guest's host. Null after it has refused the client. Never rejects. */
async function reach(
  { tokens, clock, logger, metrics }: ConsoleProxyDeps & { readonly metrics: ProxyMetrics },
  token: string,
  socket: Duplex,
): Promise<Duplex | null> {
  let found: ConsoleToken | null;
  try {
    found = await tokens.takeToken(consoleTokenHash(token), clock.now());
  } catch (error) {
    logger.error({ err: error }, "the API database could not be asked for a console's token");
    refuse(socket, 503, "The database does not answer. Try again later.");
    return null;
  }
  if (found === null) {
    refuse(socket, 403, "The token has expired or is invalid.");
    return null;
  }
  const { host, port, session, serverUuid } = found;
  try {
    const guest = await dialConsole({ host, port, session, key: consoleKeyOf(token, session) });
    logger.info({ serverUuid, host }, "a client has opened the console of a server");
    metrics.opened.inc({ outcome: "opened" });
    return guest;
  } catch (error) {
    logger.warn({ err: error, serverUuid, host }, "the console of a server could not be opened");
    metrics.opened.inc({ outcome: "failed" });
    refuse(
      socket,
      502,
      "The host of the server does not answer, or no longer waits for this client. Ask for a new URL.",
    );
    return null;
  }
}

/** Joins both sides until one ends. */
function join(client: WebSocket, guest: Duplex, clock: Clock): void {
  let answered = true;
  client.on("pong", () => {
    answered = true;
  });
  const ping = (): void => {
    if (answered) client.ping();
    else client.terminate();
    answered = false;
    timer = clock.setTimer(PING_MS, ping);
  };
  let timer = clock.setTimer(PING_MS, ping);
  const stream = createWebSocketStream(client);
  pipeline(stream, guest, stream)
    // Either side has ended, which ends the other one, too.
    .catch(() => undefined)
    .finally(() => {
      timer.cancel();
      guest.destroy();
      client.terminate();
    });
}

/** Answers a proxy without pages: a browser was sent to the page of noVNC (`/vnc_auto.html`), or a client opened the URL of a console without WebSocket. */
function answerPlainly({ url = "/" }: IncomingMessage, response: ServerResponse): void {
  if (url.split("?")[0] === "/") {
    response.writeHead(426, { "content-type": "text/plain", upgrade: "websocket" });
    response.end("Consoles are reached by WebSocket, at the URL that the Compute API gives.\n");
  } else {
    response.writeHead(404, { "content-type": "text/plain" });
    response.end(NO_PAGES);
  }
}

const NO_PAGES = `This console proxy was started without the pages of noVNC, with which a browser shows a display.
Install noVNC (on Debian and Ubuntu: apt-get install novnc) and start the proxy again with its directory:
  berth dev --console-web /usr/share/novnc
  berth console-proxy --web /usr/share/novnc
Then ask the Compute API for a new URL. The serial console of a server needs no page: berth console SERVER_UUID
`;

const REASONS: Readonly<Record<number, string>> = { 403: "Forbidden", 502: "Bad Gateway", 503: "Service Unavailable" };

function refuse(socket: Duplex, status: number, message: string): void {
  endRefused(
    socket,
    `HTTP/1.1 ${status} ${REASONS[status]}\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: ${Buffer.byteLength(message)}\r\n\r\n${message}`,
  );
}

type ProxyMetrics = ReturnType<typeof metricsOf>;

function metricsOf(registry: Registry, openCount: () => number) {
  new Gauge({
    name: "berth_consoles_open",
    help: "Consoles that are open.",
    registers: [registry],
    collect() {
      this.set(openCount());
    },
  });
  const opened = new Counter({
    name: "berth_consoles_opened_total",
    help: "Clients with a valid token, by what came of it.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  return { opened };
}
