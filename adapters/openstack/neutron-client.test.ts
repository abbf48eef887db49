import { randomUUID } from "node:crypto";
import { afterEach } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { networkingContract } from "../../test/contract/networking.contract.ts";
import { type FakeNeighbour, SERVICE_TOKEN } from "../../test/rigs/fake-neighbour.ts";
import { startFakeNeutron } from "../../test/rigs/fake-neutron.ts";
import { MemoryNetworking } from "../memory/memory-networking.ts";
import { NeighbourClient } from "./neighbour-client.ts";
import { NeutronClient } from "./neutron-client.ts";

let neutron: FakeNeighbour | null = null;
let client: NeighbourClient | null = null;
afterEach(async () => {
  await client?.close();
  await neutron?.close();
});

networkingContract("Neutron over HTTP", async () => {
  const twin = new MemoryNetworking({ newId: randomUUID });
  neutron = await startFakeNeutron(twin);
  const token = { text: SERVICE_TOKEN, catalogue: [], expiresAtMs: Number.POSITIVE_INFINITY };
  client = new NeighbourClient(
    { session: { token: async () => token, refused: async () => {} }, clock: systemClock },
    {
      ...{ service: "Neutron", types: ["network"], interface: "internal", region: null, url: neutron.url },
      ...{ timeoutMs: 5_000, triesMax: 2 },
    },
  );
  return { networking: new NeutronClient(client), twin };
});
