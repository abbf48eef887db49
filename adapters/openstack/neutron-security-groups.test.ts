import { randomUUID } from "node:crypto";
import { afterEach } from "vitest";
import { securityGroupsContract } from "../../test/contract/security-groups.contract.ts";
import type { FakeNeighbour } from "../../test/rigs/fake-neighbour.ts";
import { startFakeNeutron } from "../../test/rigs/fake-neutron.ts";
import { withServiceLogin } from "../../test/rigs/with-service-login.ts";
import { MemoryNetworking } from "../memory/memory-networking.ts";
import type { NeighbourClient } from "./neighbour-client.ts";
import { NEUTRON } from "./neutron-client.ts";
import { NeutronSecurityGroups } from "./neutron-security-groups.ts";

let neutron: FakeNeighbour | null = null;
let client: NeighbourClient | null = null;
afterEach(async () => {
  await client?.close();
  await neutron?.close();
});

securityGroupsContract("Neutron over HTTP", async () => {
  const twin = new MemoryNetworking({ newId: randomUUID });
  neutron = await startFakeNeutron(twin);
  client = withServiceLogin({ ...NEUTRON, url: neutron.url, timeoutMs: 5_000, triesMax: 2 });
  const putPort = async (projectId: string, groupId: string) => {
    twin.putPort({ projectId, networkId: "n", securityGroups: [groupId] });
  };
  return { groups: new NeutronSecurityGroups(client), putPort };
});
