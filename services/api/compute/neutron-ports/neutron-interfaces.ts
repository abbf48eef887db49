import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";

const TAG_FROM_MINOR = 70;

/** Returns a server's ports in Neutron as the Compute API shows them. Like Nova, it asks in the caller's name. */
export async function neutronInterfaces(deps: NeutronDeps, call: KnownCall, { uuid, ports }: ServerSpec) {
  const found = await askNeighbour(() => deps.networking.ports({ deviceIds: [uuid] }, askedBy(deps, call)));
  const tags = new Map(ports.map(({ portId, tag }) => [portId, tag]));
  return found.map((port) => ({
    port_state: port.status,
    fixed_ips: port.fixedAddresses.map(({ address, subnetId }) => ({ subnet_id: subnetId, ip_address: address })),
    port_id: port.id,
    net_id: port.networkId,
    mac_addr: port.macAddress,
    ...(call.minor >= TAG_FROM_MINOR && { tag: tags.get(port.id) || null }),
  }));
}
