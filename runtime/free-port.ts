import { once } from "node:events";
import { createServer } from "node:net";

/**
 * The port of 127.0.0.1 itself when it can be bound; 0: any that can. Rejects when it is taken. Somebody else may take it
 * before the caller does.
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
