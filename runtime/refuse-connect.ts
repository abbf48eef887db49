import type { Server } from "node:http";

/** How long the client may take to read the answer and close its end. Node sets no limit of its own on such a connection. */
const LINGER_MS = 1_000;

/**
 * Answers the method CONNECT with 405 and closes the connection, because this server is not a proxy. By default, Node would close the
 * connection without an answer.
 */
export function refuseConnect(server: Pick<Server, "on">, body: string): void {
  server.on("connect", (_request, socket) => {
    const deadline = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.on("close", () => clearTimeout(deadline));
    socket.on("error", () => socket.destroy());
    socket.resume();
    socket.end(
      `HTTP/1.1 405 Method Not Allowed\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    );
  });
}
