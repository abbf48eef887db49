import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";

/** Stands before a service, whose address may be known only later, and sees each request. */
export interface HttpRelay {
  readonly url: string;
  /** The address of the service, without a path. Requests are answered with 503 while it is null. */
  target: string | null;
  /** Called with the method, the path and the body of each request, which is passed on when the promise has resolved. Answered with 503 if that rejects. */
  onRequest: (method: string, path: string, body: string) => Promise<void>;
  /** Called with the status of each answer of the service. */
  onAnswer: (status: number) => void;
  close(): Promise<void>;
}

/** Starts a relay on a free port of 127.0.0.1. */
export async function startHttpRelay(target: string | null = null): Promise<HttpRelay> {
  const server = createServer((asked, answer) => {
    const pass = async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of asked) chunks.push(chunk as Buffer);
      const [body, { method = "GET", url: path = "/" }] = [Buffer.concat(chunks), asked];
      await relay.onRequest(method, path, body.toString());
      if (relay.target === null) throw new Error("there is no service yet");
      const { host: _host, connection: _connection, ...headers } = asked.headers;
      const sent = request(`${relay.target}${path}`, { method, headers, agent: false });
      sent.end(body);
      const [got] = await once(sent, "response");
      relay.onAnswer(got.statusCode);
      answer.writeHead(got.statusCode, got.headers);
      await pipeline(got, answer);
    };
    pass().catch(() => (answer.headersSent ? answer.destroy() : answer.writeHead(503).end()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const relay: HttpRelay = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target,
    onRequest: async () => {},
    onAnswer: () => {},
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return relay;
}
