import { once } from "node:events";
import { createServer } from "node:net";

/** A TCP port of this address that no process uses at present. Another process may take it before the caller does. */
export async function freePortAt(host: string): Promise<number> {
  const probe = createServer().listen(0, host);
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("a listening server has no port");
  return address.port;
}
