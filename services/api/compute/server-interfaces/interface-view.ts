import type { ServerPort } from "../../../../proto/gen/berth/shared.ts";
import { macOf } from "../../../../runtime/mac-of.ts";
import type { KnownCall } from "../../http/call.ts";
import { SIMPLE_NETWORK } from "../../network/simple-network.ts";

const TAG_FROM_MINOR = 70;

/** A port of a server as the Compute API shows it. Only ports of Berth's own network have addresses. */
export function interfaceView(
  { portId, networkId, tag, addresses, macAddress = macOf(portId) }: ServerPort,
  { minor }: Pick<KnownCall, "minor">,
) {
  return {
    port_state: "ACTIVE",
    fixed_ips: addresses.map((address) => ({ subnet_id: SIMPLE_NETWORK.subnetId, ip_address: address })),
    port_id: portId,
    net_id: networkId,
    mac_addr: macAddress,
    ...(minor >= TAG_FROM_MINOR && { tag: tag === "" ? null : tag }),
  };
}
