import { connect, type TLSSocket } from "node:tls";

/** TLS with pre-shared keys, which work with TLS 1.2 in Node. These suites have forward secrecy. */
export const KEYED_TLS = {
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305:ECDHE-PSK-AES256-CBC-SHA384",
} as const;

const CONNECT_MS = 10_000;

/**
 * Connects to a server that knows the key under this identity. Neither side needs a certificate. Rejects with an Error that names the server, by
 * `what` and its address, when it does not answer in time or does not know the key.
 */
export function dialWithKey(target: {
  readonly what: string;
  readonly host: string;
  readonly port: number;
  readonly identity: string;
  readonly key: Uint8Array;
}): Promise<TLSSocket> {
  const { what, host, port, identity, key } = target;
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = connect({
    ...{ host, port, ...KEYED_TLS },
    pskCallback: () => ({ psk: key, identity }),
    // The right server is recognised by the key. It has no certificate.
    checkServerIdentity: () => undefined,
  });
  const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${CONNECT_MS} ms`)), CONNECT_MS);
  const failed = (error: Error) => reject(new Error(`${what} at ${host}:${port}: ${error.message}`));
  const closed = () => reject(new Error(`${what} at ${host}:${port}: the connection was closed`));
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
