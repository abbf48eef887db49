import { randomBytes } from "node:crypto";
import { request } from "node:http";
import type { Duplex } from "node:stream";
import { LxdError } from "./lxd-error.ts";

const OPEN_MS = 10_000;
const KEY_BYTES = 16;

/**
 * Opens a WebSocket of LXD, without reading its frames. What is written must be frames of a client (see `FrameMasker`). Rejects with an LxdError
 * when LXD refuses it.
 */
export function openWebSocket(socketPath: string, path: string): Promise<Duplex> {
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
  const fail = (reason: string) => reject(new LxdError("unavailable", `LXD opens no connection for a disk: ${reason}`));
  const asked = request({
    ...{ socketPath, path, timeout: OPEN_MS },
    headers: {
      ...{ host: "lxd", connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
      "sec-websocket-key": randomBytes(KEY_BYTES).toString("base64"),
    },
  });
  asked.once("upgrade", (_answer, socket, head) => {
    socket.setTimeout(0);
    // The caller sees a later error by the end of the connection. Without a listener it would end the process.
    socket.on("error", () => undefined);
    if (head.length > 0) socket.unshift(head);
    resolve(socket);
  });
  asked.once("response", (answer) => {
    answer.resume();
    fail(`HTTP status ${answer.statusCode}`);
  });
  asked.once("timeout", () => asked.destroy(new Error(`no answer within ${OPEN_MS} ms`)));
  asked.once("error", (error) => fail(error.message));
  asked.end();
  return promise;
}
