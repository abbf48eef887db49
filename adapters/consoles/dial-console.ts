import type { Duplex } from "node:stream";
import { connect } from "node:tls";
import { CONSOLE_TLS } from "./console-tls.ts";

const CONNECT_MS = 10_000;

/**
 * Connects to a host that waits for the client of a session. Rejects with an Error when the host does not answer in time or does not (or no longer)
 * know the session.
 */
export function dialConsole(target: {
  readonly host: string;
  readonly port: number;
  readonly session: string;
  readonly key: Uint8Array;
}): Promise<Duplex> {
  const { host, port, session, key } = target;
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
  const socket = connect({
    ...{ host, port, ...CONSOLE_TLS },
    pskCallback: () => ({ psk: key, identity: session }),
    // The right host is recognised by the key. It has no certificate.
    checkServerIdentity: () => undefined,
  });
  const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${CONNECT_MS} ms`)), CONNECT_MS);
  const failed = (error: Error) => reject(new Error(`the console at ${host}:${port}: ${error.message}`));
  const closed = () => reject(new Error(`the console at ${host}:${port}: the connection was closed`));
  socket.once("error", failed);
  socket.once("close", closed);
  socket.once("secureConnect", () => {
    clearTimeout(timer);
    socket.off("error", failed).off("close", closed);
    // The caller sees a later error by the end of the connection. Without a listener it would end the process.
    socket.on("error", () => undefined);
    socket.setNoDelay(true);
    resolve(socket);
  });
  return promise.finally(() => clearTimeout(timer));
}
