import { randomUUID } from "node:crypto";
import { afterEach } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { blockStorageContract } from "../../test/contract/block-storage.contract.ts";
import { type FakeCinder, startFakeCinder } from "../../test/rigs/fake-cinder.ts";
import { SERVICE_TOKEN } from "../../test/rigs/fake-neutron.ts";
import { MemoryBlockStorage } from "../memory/memory-block-storage.ts";
import { CINDER, CinderClient } from "./cinder-client.ts";
import { NeighbourClient } from "./neighbour-client.ts";

let cinder: FakeCinder | null = null;
let client: NeighbourClient | null = null;
afterEach(async () => {
  await client?.close();
  await cinder?.close();
});

blockStorageContract("Cinder over HTTP", async () => {
  const twin = new MemoryBlockStorage({ newId: randomUUID });
  cinder = await startFakeCinder(twin);
  const token = { text: SERVICE_TOKEN, catalogue: [], expiresAtMs: Number.POSITIVE_INFINITY };
  client = new NeighbourClient(
    { session: { token: async () => token, refused: async () => {} }, clock: systemClock },
    { ...CINDER, interface: "internal", region: null, url: cinder.url, timeoutMs: 5_000, triesMax: 2 },
  );
  return { storage: new CinderClient(client), twin };
});
