import { afterAll, beforeAll, describe } from "vitest";
import type { NeighbourClient } from "../../adapters/openstack/neighbour-client.ts";
import { NEUTRON, NeutronClient } from "../../adapters/openstack/neutron-client.ts";
import { NeutronFloatingIps } from "../../adapters/openstack/neutron-floating-ips.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import { floatingIpsContract } from "../contract/floating-ips.contract.ts";
import { withServiceLogin } from "../rigs/with-service-login.ts";
import { hasNeutron, type RealNeutron, startRealNeutron } from "./real-neutron.ts";

let neutron: RealNeutron;
let client: NeighbourClient;

// Needs Debian's package neutron-server: `npm run test:openstack` installs it.
describe.runIf(hasNeutron)("a real Neutron", () => {
  beforeAll(async () => {
    neutron = await startRealNeutron("router");
    client = withServiceLogin({ ...NEUTRON, url: neutron.url, timeoutMs: 60_000, triesMax: 1 });
  }, 900_000);
  afterAll(async () => {
    await client?.close();
    await neutron?.stop();
  });

  /** Makes a network with a subnet, whose ids it returns. */
  async function makeNetwork(network: object, subnet: object): Promise<{ id: string; subnetId: string }> {
    const made = await neutron.call("POST", "networks", { network });
    const id = made.network?.id ?? "";
    const fixed = { network_id: id, ip_version: 4, enable_dhcp: false, ...subnet };
    const { subnet: ofNetwork } = await neutron.call("POST", "subnets", { subnet: fixed });
    return { id, subnetId: ofNetwork?.id ?? "" };
  }

  floatingIpsContract("Debian's Neutron", async () => {
    // The router takes one of the three addresses for itself.
    const external = await makeNetwork(
      { name: "public", "router:external": true, project_id: "ops" },
      { cidr: "203.0.113.0/24", allocation_pools: [{ start: "203.0.113.10", end: "203.0.113.12" }] },
    );
    const internal = await makeNetwork({ name: "own", project_id: "one" }, { cidr: "10.1.0.0/24", project_id: "one" });
    const gateway = { external_gateway_info: { network_id: external.id } };
    const { router } = await neutron.call("POST", "routers", { router: { name: "r", project_id: "one", ...gateway } });
    await neutron.call("PUT", `routers/${router?.id}/add_router_interface`, { subnet_id: internal.subnetId });
    const networking = new NeutronClient(client);
    return {
      floatingIps: new NeutronFloatingIps(client),
      externalNetworkId: external.id,
      internalNetworkId: internal.id,
      putPort: async (device_id: string) => {
        const port = { network_id: internal.id, project_id: "one", device_id, device_owner: "compute:nova" };
        const made = await neutron.call("POST", "ports", { port });
        const [found] = await networking.ports({ id: made.port?.id ?? "" }, OWN_NAME);
        if (found === undefined) throw new Error("Neutron does not show a port that it has made");
        return found;
      },
    };
  });
});
