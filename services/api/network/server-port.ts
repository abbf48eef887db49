import type { PortRecord } from "../../../core/tasks/port-record.ts";
import type { ServerPort } from "../../../proto/gen/berth/shared.ts";
import { SIMPLE_NETWORK } from "./simple-network.ts";

/** Returns a port as its server keeps it, so that showing the server asks nobody for its addresses. */
export function serverPortOf({ id, networkId, address }: PortRecord, tag: string): ServerPort {
  const networkName = networkId === SIMPLE_NETWORK.id ? SIMPLE_NETWORK.name : "";
  return { portId: id, networkId, tag, networkName, addresses: address === null ? [] : [address] };
}
