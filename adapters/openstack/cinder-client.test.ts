import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
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

test("a call that lets Cinder export a volume may take longer than others", async () => {
  const slow = createServer((_request, response) => {
    const attachment = { id: "a", volume_id: "v", instance: "s", status: "attaching", connection_info: {} };
    setTimeout(() => response.end(JSON.stringify({ attachment })), 300);
  });
  await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
    const token = { text: SERVICE_TOKEN, catalogue: [], expiresAtMs: Number.POSITIVE_INFINITY };
    client = new NeighbourClient(
      { session: { token: async () => token, refused: async () => {} }, clock: systemClock },
      { ...CINDER, interface: "internal", region: null, url, timeoutMs: 50, triesMax: 1 },
    );
    const storage = new CinderClient(client);
    const connector = { host: "h", initiator: "i" };
    const by = { callerToken: null, requestId: null };
    expect(await storage.connect("a", connector)).toMatchObject({ kind: "connected" });
    const wanted = { volumeId: "v", serverUuid: "s" };
    expect(await storage.reserve({ ...wanted, connector }, by)).toMatchObject({ kind: "reserved" });
    await expect(storage.reserve({ ...wanted, connector: null }, by)).rejects.toMatchObject({ code: "unreachable" });
  } finally {
    slow.closeAllConnections();
    slow.close();
  }
});
