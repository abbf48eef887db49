import { randomUUID } from "node:crypto";
import { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import { OWN_NETWORK, putContractNetworks, putExternalNetwork } from "../contract/networking.contract.ts";

/** A twin of Neutron with what the contract of floating IPs stands on. */
export function floatingIpTwin() {
  const twin = new MemoryNetworking({ newId: randomUUID });
  putContractNetworks(twin);
  return {
    twin,
    externalNetworkId: putExternalNetwork(twin, 2),
    internalNetworkId: OWN_NETWORK,
    putPort: async (deviceId: string) => twin.putPort({ projectId: "one", networkId: OWN_NETWORK, deviceId }),
  };
}
