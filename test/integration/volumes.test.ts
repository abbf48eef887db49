import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

let cloud: TestCloud;
beforeAll(async () => {
  const inventories = { VCPU: { total: 8 }, MEMORY_MB: { total: 8_192 }, DISK_GB: { total: 100 } };
  const hosts = ["h-0", "h-1"].map((name) => ({ name, inventories }));
  cloud = await startTestCloud({ cells: [{ name: "c-1", hosts }], schedulers: 1, conductors: 1, volumes: "simple" });
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
}, 120_000);
afterAll(() => cloud?.close());

const show = async (id: string) => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
const statusOf = async (id: string) => (await cloud.call("GET", `/volume/v3/volumes/${id}`)).json.volume?.status;
const isIn = (id: string, status: string | undefined) =>
  eventually(`volume ${id} to be ${status}`, async () => (await statusOf(id)) === status);
const boot = async (): Promise<string> => {
  const { json } = await cloud.call("POST", "/v2.1/servers", {
    server: { name: "s", flavorRef: "s", imageRef: "", networks: "none" },
  });
  await eventually("the server to run", async () => (await show(json.server.id)).status === "ACTIVE");
  return json.server.id;
};
const newVolume = async (): Promise<string> =>
  (await cloud.call("POST", "/volume/v3/volumes", { volume: { size: 1 } })).json.volume.id;
const attach = async (server: string, volumeId: string, fields: object = {}): Promise<number> => {
  const body = { volumeAttachment: { volumeId, ...fields } };
  return (await cloud.call("POST", `/v2.1/servers/${server}/os-volume_attachments`, body)).status;
};
const detach = async (server: string, id: string): Promise<number> =>
  (await cloud.call("DELETE", `/v2.1/servers/${server}/os-volume_attachments/${id}`)).status;

test("a volume goes with its server to another host, and from there to another server", async () => {
  const [one, other, id] = [await boot(), await boot(), await newVolume()];
  expect(await attach(one, id)).toBe(200);
  await isIn(id, "in-use");
  expect((await show(one))["os-extended-volumes:volumes_attached"]).toEqual([{ id, delete_on_termination: false }]);
  const from = (await show(one))["OS-EXT-SRV-ATTR:host"];
  const migrate = { "os-migrateLive": { host: null, block_migration: "auto" } };
  expect((await cloud.call("POST", `/v2.1/servers/${one}/action`, migrate)).status).toBe(202);
  await eventually("the server to be on the other host", async () => {
    const server = await show(one);
    return server["OS-EXT-SRV-ATTR:host"] !== from && server["OS-EXT-STS:task_state"] === null;
  });
  expect(await attach(other, id)).toBe(400);
  expect(await detach(one, id)).toBe(202);
  await isIn(id, "available");
  expect(await attach(other, id)).toBe(200);
  await isIn(id, "in-use");
  await cloud.call("DELETE", `/v2.1/servers/${other}`);
  await isIn(id, "available");
});

test("of many calls for few volumes, each volume has one server, and all can be taken back", async () => {
  const servers = [await boot(), await boot(), await boot()];
  const volumes = [await newVolume(), await newVolume()];
  for (let round = 0; round < 2; round += 1) {
    await Promise.all(servers.flatMap((server) => volumes.map((id) => attach(server, id))));
    for (const id of volumes)
      await eventually("the volume to be settled", async () => /in-use|available/.test(await statusOf(id)));
    const views = await Promise.all(servers.map(show));
    const owned = views.flatMap((server) =>
      server["os-extended-volumes:volumes_attached"].map((one: { id: string }) => [server.id, one.id]),
    );
    expect(new Set(owned.map(([, id]) => id)).size).toBe(owned.length);
    for (const [server, id] of owned) {
      await eventually("the detachment to be taken", async () => (await detach(server, id)) === 202);
      await isIn(id, "available");
    }
  }
});
