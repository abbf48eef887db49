import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { NeighbourFault } from "../../core/stores/neighbour-fault.ts";

/** A part of another OpenStack service's API, over its in-process twin. */
export interface FakeNeighbour {
  readonly url: string;
  /** The requests in order: method and path. */
  readonly asked: string[];
  close(): Promise<void>;
}

export interface FakeAnswer {
  readonly status: number;
  readonly body?: unknown;
}

/** The token of this service. Any other token is the id of the caller's project. */
export const SERVICE_TOKEN = "service-token";

/** Starts a server on loopback. A call that the twin leaves without an answer breaks off. */
export async function startFakeNeighbour(
  answer: (request: IncomingMessage) => Promise<FakeAnswer>,
): Promise<FakeNeighbour> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    answer(request).then(
      ({ status, body }) => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(body === undefined ? "" : JSON.stringify(body));
      },
      (error) => {
        if (!(error instanceof NeighbourFault)) throw error;
        request.socket.destroy();
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
