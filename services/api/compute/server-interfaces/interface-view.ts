import type { ServerPort } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { macOf } from "../../network/mac-of.ts";

const TAG_FROM_MINOR = 70;

/** A port of a server as the Compute API shows it. It has no addresses: Berth connects no networks. */
export function interfaceView({ portId, networkId, tag }: ServerPort, { minor }: Pick<KnownCall, "minor">) {
  return {
    port_state: "ACTIVE",
    fixed_ips: [],
    port_id: portId,
    net_id: networkId,
    mac_addr: macOf(portId),
    ...(minor >= TAG_FROM_MINOR && { tag: tag === "" ? null : tag }),
  };
}
