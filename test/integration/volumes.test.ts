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

const bootFrom = async (mappings: readonly object[], fields: object = {}) => {
  const server = { name: "b", flavorRef: "s", imageRef: "", networks: "none", ...fields };
  return cloud.call("POST", "/v2.1/servers", { server: { ...server, block_device_mapping_v2: mappings } });
};
const bootable = async (): Promise<string> => {
  const id = await newVolume();
  await cloud.call("POST", `/volume/v3/volumes/${id}/action`, { "os-set_bootable": { bootable: true } });
  return id;
};
const rootOf = (uuid: string, fields: object = {}) => ({
  ...{ source_type: "volume", destination_type: "volume", uuid, boot_index: 0, ...fields },
});

test("a server boots from a volume, keeps it, claims no local disk for it, and gives it back when it is deleted", async () => {
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "huge", name: "huge", vcpus: 1, ram: 64, disk: 5_000 } });
  const [root, data] = [await bootable(), await newVolume()];
  const mappings = [rootOf(root), { ...rootOf(data, { delete_on_termination: true }), boot_index: -1 }];
  const { json } = await bootFrom(mappings, { flavorRef: "huge" });
  const { id } = json.server;
  await eventually("the server to run", async () => (await show(id)).status === "ACTIVE");
  await isIn(root, "in-use");
  await isIn(data, "in-use");
  expect(await show(id)).toMatchObject({ image: "", "OS-EXT-SRV-ATTR:root_device_name": "/dev/vda" });
  const listed = (await cloud.call("GET", `/v2.1/servers/${id}/os-volume_attachments`)).json.volumeAttachments;
  expect(listed.map(({ device }: { device: string }) => device)).toEqual(["/dev/vda", "/dev/vdb"]);
  const refused = await cloud.call("DELETE", `/v2.1/servers/${id}/os-volume_attachments/${root}`);
  expect([refused.status, refused.json.badRequest.message]).toEqual([400, "Cannot detach a root device volume"]);
  for (const [action, body] of Object.entries({
    rebuild: { imageRef: "70a599e0-31e7-49b7-b260-868f441e862b" },
    ...{ createImage: { name: "i" }, rescue: null },
    createBackup: { name: "b", backup_type: "daily", rotation: 1 },
  })) {
    const answer = await cloud.call("POST", `/v2.1/servers/${id}/action`, { [action]: body });
    expect([action, answer.status, answer.json.badRequest.message]).toEqual([
      ...[action, 400],
      expect.stringMatching(/volume-backed/),
    ]);
  }
  for (const [action, status] of [
    ["suspend", "SUSPENDED"],
    ["resume", "ACTIVE"],
  ]) {
    expect((await cloud.call("POST", `/v2.1/servers/${id}/action`, { [action!]: null })).status).toBe(202);
    await eventually(`the server to be ${status}`, async () => (await show(id)).status === status);
  }
  expect(await detach(id, data)).toBe(202);
  await isIn(data, "available");
  expect(await attach(id, data, { delete_on_termination: true })).toBe(200);
  await isIn(data, "in-use");
  await cloud.call("DELETE", `/v2.1/servers/${id}`);
  await isIn(root, "available");
  await isIn(data, undefined);
});

test("a build that fails on one host continues on another with the volume, and one that fails for good gives it back", async () => {
  const id = await bootable();
  const hop = await bootFrom([rootOf(id, { delete_on_termination: true })], {
    metadata: { "berth:fake": JSON.stringify({ outcome: "reschedule", first: 1 }) },
  });
  expect(hop.status).toBe(202);
  await isIn(id, "in-use");
  expect((await show(hop.json.server.id)).status).toBe("ACTIVE");
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "giant", name: "giant", vcpus: 900, ram: 64, disk: 0 } });
  const lost = await bootable();
  const failed = await bootFrom([rootOf(lost, { delete_on_termination: true })], {
    metadata: { "berth:fake": JSON.stringify({ outcome: "abort" }) },
  });
  expect(failed.status).toBe(202);
  await eventually("the build to fail", async () => (await show(failed.json.server.id)).status === "ERROR");
  await isIn(lost, "available");
  expect((await show(failed.json.server.id))["os-extended-volumes:volumes_attached"]).toEqual([]);
  const nowhere = await bootFrom([rootOf(lost)], { flavorRef: "giant" });
  expect(nowhere.status).toBe(202);
  await eventually("the server to fail", async () => (await show(nowhere.json.server.id)).status === "ERROR");
  await isIn(lost, "available");
  const next = await bootFrom([rootOf(lost)]);
  await eventually("the server to run", async () => (await show(next.json.server.id)).status === "ACTIVE");
  await isIn(lost, "in-use");
});
