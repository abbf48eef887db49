import type { Server } from "node:http";
import { endRefused } from "./end-refused.ts";

/**
 * Answers the method CONNECT with 405 and closes the connection, because this server is not a proxy. By default, Node would close the
 * connection without an answer.
 */
export function refuseConnect(server: Pick<Server, "on">, body: string): void {
  server.on("connect", (_request, socket) => {
    endRefused(
      socket,
      `HTTP/1.1 405 Method Not Allowed\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    );
  });
}
