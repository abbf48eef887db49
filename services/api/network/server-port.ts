import type { PortRecord } from "../../../core/tasks/port-record.ts";
import type { ServerPort } from "../../../proto/gen/berth/shared.ts";
import { SIMPLE_NETWORK } from "./simple-network.ts";

/** Returns a port as its server keeps it, so that its addresses can be shown without another look-up. */
export function serverPortOf({ id, networkId, address }: PortRecord, tag: string): ServerPort {
  const networkName = networkId === SIMPLE_NETWORK.id ? SIMPLE_NETWORK.name : "";
  return {
    portId: id,
    networkId,
    tag,
    networkName,
    addresses: address === null ? [] : [address],
    slot: 0,
    floatingAddresses: [],
  };
}
