import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Resolves with the `wanted` port of 127.0.0.1 if it can be bound, or with any free one when `wanted` is 0. Rejects when the port is taken.
 * Another process may still take the port before the caller binds it.
 */
export async function freePort(wanted = 0): Promise<number> {
  const probe = createServer().listen(wanted, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("a listening server has no port");
  return address.port;
}
