import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const cinder = new MemoryBlockStorage({ newId: randomUUID });
let cloud: TestCloud;
beforeAll(async () => {
  const inventories = { VCPU: { total: 32 }, MEMORY_MB: { total: 8_192 }, DISK_GB: { total: 100 } };
  cloud = await startTestCloud({
    ...{ cells: [{ name: "c-1", hosts: [{ name: "h-0", inventories }] }], schedulers: 1, conductors: 1 },
    ...{ volumes: "cinder", blockStorage: cinder },
  });
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
}, 120_000);
afterAll(() => cloud?.close());

async function withVolume(): Promise<{ readonly server: string; readonly id: string }> {
  const { json } = await cloud.call("POST", "/v2.1/servers", {
    server: { name: "s", flavorRef: "s", imageRef: "", networks: "none" },
  });
  const server = json.server.id;
  const show = async () => (await cloud.call("GET", `/v2.1/servers/${server}`)).json.server;
  await eventually("the server to run", async () => (await show()).status === "ACTIVE");
  const { id } = cinder.putVolume({ projectId: "any" });
  await cloud.call("POST", `/v2.1/servers/${server}/os-volume_attachments`, { volumeAttachment: { volumeId: id } });
  await eventually("the volume to be attached", () => cinder.all().find((one) => one.id === id)?.status === "in-use");
  return { server, id };
}
const tell = (server: string, tag: string) =>
  cloud.call("POST", "/v2.1/os-server-external-events", {
    events: [{ name: "volume-extended", server_uuid: server, tag }],
  });
const actions = async (server: string): Promise<readonly string[]> => {
  const { json } = await cloud.call("GET", `/v2.1/servers/${server}/os-instance-actions`);
  return json.instanceActions.map((one: { action: string; message: string | null }) => `${one.action} ${one.message}`);
};
const isTold = (server: string) =>
  eventually("the guest to be told", async () => (await actions(server))[0] === "extend_volume null");

test("a guest is told that its volume has grown, also while the attachment of the volume is still under way", async () => {
  const { server, id } = await withVolume();
  // Cinder is silent for a moment, and then the server has ended what it was doing.
  let silences = 2;
  cinder.fate = (method) => (method === "volume" && silences-- > 0 ? "silent" : "answered");
  expect((await tell(server, id)).status).toBe(200);
  await isTold(server);
  expect(silences).toBeLessThan(0);
});

test("an event about a volume that the server does not have, or about no volume, changes nothing", async () => {
  const [{ server }, other] = [await withVolume(), await withVolume()];
  for (const tag of [other.id, randomUUID(), "no volume"]) expect((await tell(server, tag)).status).toBe(200);
  expect((await tell(other.server, other.id)).status).toBe(200);
  await isTold(other.server);
  expect((await actions(server)).filter((one) => one.startsWith("extend"))).toEqual([]);
});
