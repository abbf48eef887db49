import { afterAll, beforeAll, describe } from "vitest";
import type { NeighbourClient } from "../../adapters/openstack/neighbour-client.ts";
import { NEUTRON } from "../../adapters/openstack/neutron-client.ts";
import { NeutronSecurityGroups } from "../../adapters/openstack/neutron-security-groups.ts";
import { securityGroupsContract } from "../contract/security-groups.contract.ts";
import { withServiceLogin } from "../rigs/with-service-login.ts";
import { hasNeutron, type RealNeutron, startRealNeutron } from "./real-neutron.ts";

let neutron: RealNeutron;
let client: NeighbourClient;

// Needs Debian's package neutron-server: `npm run test:openstack` installs it.
describe.runIf(hasNeutron)("a real Neutron", () => {
  beforeAll(async () => {
    neutron = await startRealNeutron();
    client = withServiceLogin({ ...NEUTRON, url: neutron.url, timeoutMs: 60_000, triesMax: 1 });
  }, 900_000);
  afterAll(async () => {
    await client?.close();
    await neutron?.stop();
  });

  securityGroupsContract("Debian's Neutron", async () => ({
    groups: new NeutronSecurityGroups(client),
    putPort: async (project_id, groupId) => {
      const { network } = await neutron.call("POST", "networks", { network: { project_id } });
      const port = { network_id: network?.id, project_id, security_groups: [groupId] };
      await neutron.call("POST", "ports", { port });
    },
  }));
});
