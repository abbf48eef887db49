import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { readinessText } from "../../runtime/probes.ts";
import type { HostPort } from "../../runtime/setting-kinds.ts";
import { faultBody } from "./http/fault.ts";
import { errorDocument, PlacementError } from "./placement/placement-error.ts";

/** How long a client is told to wait before it asks again. */
const RETRY_AFTER_SECONDS = 5;

export interface WaitingRoomOptions {
  readonly listen: HostPort;
  /** Returns what the service is waiting for, or nothing while it is busy starting. */
  readonly waitingFor: () => readonly string[];
  /** Whether a path belongs to the Placement API, whose errors have another form. */
  readonly isPlacement: (path: string) => boolean;
}

/**
 * Answers at an api's address until the api does: `/healthz` with 200, `/readyz` with 503 and the things it waits for, and every call with
 * 503 and `Retry-After`. A load balancer or an orchestrator then sees a live process that is not ready, instead of a refused connection.
 *
 * It is closed just before the api listens; a connection in between is refused. With port 0 it does not listen, since the address is
 * unknown until the api is ready.
 */
export class WaitingRoom {
  readonly #options: WaitingRoomOptions;
  readonly #server = createServer((request, response) => this.#answer(request, response));

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
  }

  /** Rejects when the address cannot be bound. */
  async open(): Promise<void> {
    const { host, port } = this.#options.listen;
    if (port === 0) return;
    this.#server.listen(port, host);
    await once(this.#server, "listening");
  }

  /** Resolves when the address is free. Repeatable. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url?.split("?")[0] ?? "/";
    // A kept-alive connection would outlive this server.
    response.setHeader("connection", "close");
    if (path === "/healthz") {
      response.writeHead(200, { "content-type": "text/plain" }).end("ok\n");
      return;
    }
    response.setHeader("retry-after", String(RETRY_AFTER_SECONDS));
    if (path === "/readyz") {
      const remarks = this.#options.waitingFor().map((what) => `waiting for ${what}`);
      response.writeHead(503, { "content-type": "text/plain" }).end(readinessText(false, remarks));
      return;
    }
    const requestId = `req-${randomUUID()}`;
    const headers = { "content-type": "application/json", "x-openstack-request-id": requestId };
    response.writeHead(503, headers).end(JSON.stringify(this.#refusal(request.method ?? "", path, requestId)));
  }

  #refusal(method: string, path: string, requestId: string): object {
    const why = "The service is starting and does not accept calls yet.";
    if (!this.#options.isPlacement(path)) return faultBody(503, why);
    return errorDocument(new PlacementError(503, why), { method, requestId, withCode: false });
  }
}
