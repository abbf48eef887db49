import type { Duplex } from "node:stream";
import { dialWithKey } from "../../runtime/keyed-tls.ts";

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
  const { session: identity, ...at } = target;
  return dialWithKey({ what: "the console", identity, ...at });
}
