import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import { metricsText } from "./metrics-text.ts";
import type { Service } from "./service.ts";
import type { HostPort } from "./setting-kinds.ts";

export interface Probes extends Service {
  /** The address on which it listens, with the port that was bound. Available only after `start`. */
  readonly address: HostPort;
}

/**
 * `/healthz` (the process answers), `/readyz` (200 once it serves, else 503) and `/metrics` (Prometheus), for services that
 * have no HTTP of their own.
 */
export function createProbes(options: {
  readonly listen: HostPort;
  readonly registry: Registry;
  readonly isReady: () => boolean | Promise<boolean>;
  /** Further lines of `/readyz`, about problems of a service that works nevertheless. */
  readonly remarks?: () => readonly string[];
  /** Further pages by path; what they return is served as JSON. */
  readonly pages?: Readonly<Record<string, () => unknown>>;
}): Probes {
  const server = createServer((request, response) => {
    answer(request.url ?? "/", request.headers.accept, options).then(
      ({ status, type, body }) => response.writeHead(status, { "content-type": type }).end(body),
      (error: Error) => response.writeHead(500, { "content-type": "text/plain" }).end(`${error.message}\n`),
    );
  });
  return {
    get address() {
      const { address, port } = server.address() as AddressInfo;
      return { host: address, port };
    },
    start: () => listen(server, options.listen),
    close: () => closeServer(server),
  };
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

async function answer(
  url: string,
  accept: string | undefined,
  options: {
    readonly registry: Registry;
    readonly isReady: () => boolean | Promise<boolean>;
    readonly remarks?: () => readonly string[];
    readonly pages?: Readonly<Record<string, () => unknown>>;
  },
): Promise<Answer> {
  const type = "text/plain";
  const path = url.split("?")[0] ?? "/";
  switch (path) {
    case "/healthz":
      return { status: 200, type, body: "ok\n" };
    case "/readyz": {
      const ready = await options.isReady();
      return { status: ready ? 200 : 503, type, body: readinessText(ready, options.remarks?.() ?? []) };
    }
    case "/metrics":
      return { status: 200, ...(await metricsText(options.registry, accept)) };
    default: {
      const page = options.pages?.[path];
      if (page === undefined) return { status: 404, type, body: "not found\n" };
      return { status: 200, type: "application/json", body: `${JSON.stringify(await page())}\n` };
    }
  }
}

/** The body of `/readyz`. */
export function readinessText(ready: boolean, remarks: readonly string[]): string {
  return [ready ? "ready" : "not ready", ...remarks, ""].join("\n");
}

function listen(server: Server, { host, port }: HostPort): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function closeServer(server: Server): Promise<void> {
  if (!server.listening) return Promise.resolve();
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
