import { randomUUID } from "node:crypto";
import { afterEach } from "vitest";
import { networkingContract } from "../../test/contract/networking.contract.ts";
import type { FakeNeighbour } from "../../test/rigs/fake-neighbour.ts";
import { startFakeNeutron } from "../../test/rigs/fake-neutron.ts";
import { withServiceLogin } from "../../test/rigs/with-service-login.ts";
import { MemoryNetworking } from "../memory/memory-networking.ts";
import type { NeighbourClient } from "./neighbour-client.ts";
import { NEUTRON, NeutronClient } from "./neutron-client.ts";

let neutron: FakeNeighbour | null = null;
let client: NeighbourClient | null = null;
afterEach(async () => {
  await client?.close();
  await neutron?.close();
});

networkingContract("Neutron over HTTP", async () => {
  const twin = new MemoryNetworking({ newId: randomUUID });
  neutron = await startFakeNeutron(twin);
  client = withServiceLogin({ ...NEUTRON, url: neutron.url, timeoutMs: 5_000, triesMax: 2 });
  return { networking: new NeutronClient(client), twin };
});
