import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { Fault } from "../../http/fault.ts";

/** The most ports that a server gets, at its creation or later. A server's record has all of them, and each has an address. */
export const SERVER_PORTS_MAX = 64;

/** Refuses (403) to give one more port to a server that has as many as it may have. */
export function refuseManyPorts({ ports }: Pick<ServerSpec, "ports">): void {
  if (ports.length >= SERVER_PORTS_MAX)
    throw new Fault(
      403,
      `Maximum number of ports exceeded: a server has at most ${SERVER_PORTS_MAX}. Detach one that it does not need.`,
    );
}
