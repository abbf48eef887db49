import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const cinder = new MemoryBlockStorage({ newId: randomUUID });
let cloud: TestCloud;
beforeAll(async () => {
  const inventories = { VCPU: { total: 32 }, MEMORY_MB: { total: 8_192 }, DISK_GB: { total: 100 } };
  const hosts = ["h-0", "h-1"].map((name) => ({ name, inventories }));
  cloud = await startTestCloud({
    ...{ cells: [{ name: "c-1", hosts }], schedulers: 1, conductors: 1, volumes: "cinder", blockStorage: cinder },
  });
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
}, 120_000);
afterEach(() => {
  cinder.fate = () => "answered";
});
afterAll(() => cloud?.close());

const show = async (id: string) => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
const find = (id: string) => cinder.all().find((volume) => volume.id === id);
const isIn = (id: string, status: string | undefined) =>
  eventually(`volume ${id} to be ${status}`, () => find(id)?.status === status);
const newVolume = (values: object = {}): string => cinder.putVolume({ projectId: "any", ...values }).id;
const create = (mappings: readonly object[]) =>
  cloud.call("POST", "/v2.1/servers", {
    server: {
      ...{ name: "s", flavorRef: "s", imageRef: "", networks: "none" },
      ...(mappings.length > 0 && { block_device_mapping_v2: mappings }),
    },
  });
const boot = async (mappings: readonly object[] = []): Promise<string> => {
  const { status, json } = await create(mappings);
  expect([status, json]).toEqual([202, expect.anything()]);
  await eventually("the server to run", async () => (await show(json.server.id)).status === "ACTIVE");
  return json.server.id;
};
const urlOf = (server: string, id = "") => `/v2.1/servers/${server}/os-volume_attachments${id}`;
const attach = (server: string, volumeId: string, fields: object = {}) =>
  cloud.call("POST", urlOf(server), { volumeAttachment: { volumeId, ...fields } });
const detach = (server: string, id: string) => cloud.call("DELETE", urlOf(server, `/${id}`));
const attachmentsOf = (volumeId: string) => cinder.attachments({ volumeId });
const listed = async (server: string) => (await cloud.call("GET", urlOf(server))).json.volumeAttachments;
const phases = (server: string): Promise<readonly string[]> =>
  withClient(cloud.databaseUrl, async (client) => {
    const { rows } = await client.query<{ phase: string }>("select phase from volumes where server_uuid = $1", [
      server,
    ]);
    return rows.map(({ phase }) => phase);
  });
const root = (uuid: string, fields: object = {}) => ({
  ...{ source_type: "volume", destination_type: "volume", uuid, boot_index: 0, ...fields },
});

test("a volume of Cinder is attached to a server, and detached, after which Cinder has no attachment of it", async () => {
  const [server, id] = [await boot(), newVolume()];
  expect((await attach(server, id)).status).toBe(200);
  await isIn(id, "in-use");
  await eventually("the attachment to be done", async () => (await show(server))["OS-EXT-STS:task_state"] === null);
  const [attachment] = find(id)?.attachedTo ?? [];
  expect(attachment).toMatchObject({ serverUuid: server, host: (await show(server))["OS-EXT-SRV-ATTR:host"] });
  expect(await listed(server)).toMatchObject([{ volumeId: id, attachment_id: attachment?.attachmentId }]);
  await eventually("the detachment to be taken", async () => (await detach(server, id)).status === 202);
  await isIn(id, "available");
  expect(await attachmentsOf(id)).toEqual([]);
  await eventually("the list to be empty", async () => (await listed(server)).length === 0);
});

test("a volume that another server has, or that Cinder does not show or give, is refused", async () => {
  const [one, other, id] = [await boot(), await boot(), newVolume()];
  expect((await attach(one, id)).status).toBe(200);
  const taken = await attach(other, id);
  expect([taken.status, taken.json.badRequest.message]).toEqual([
    400,
    `Invalid volume: volume ${id} is already attached to instances: ${one}`,
  ]);
  const missing = randomUUID();
  expect(await attach(other, missing)).toMatchObject({
    status: 404,
    json: { itemNotFound: { message: `Volume ${missing} could not be found.` } },
  });
  const busy = newVolume({ status: "error" });
  expect(await attach(other, busy)).toMatchObject({
    status: 400,
    json: { badRequest: { message: expect.stringContaining("the current status is error") } },
  });
  expect(await listed(other)).toEqual([]);
});

test("a server boots from a volume, and its end deletes the volumes that it was to delete, and releases the others", async () => {
  const [disk, data] = [newVolume({ isBootable: true }), newVolume()];
  const id = await boot([root(disk), root(data, { boot_index: -1, delete_on_termination: true })]);
  expect(find(disk)?.attachedTo).toMatchObject([{ serverUuid: id }]);
  await isIn(data, "in-use");
  await eventually("the volumes to be the server's", async () => (await listed(id)).length === 2);
  // Only what the settler knows to be attached is deleted with the server.
  await eventually("the api to know of both", async () => (await phases(id)).join() === "attached,attached");
  await cloud.call("DELETE", `/v2.1/servers/${id}`);
  await isIn(disk, "available");
  await isIn(data, undefined);
  expect(await attachmentsOf(disk)).toEqual([]);
});

test("a volume that is not bootable, and one of an unknown id, are refused, and nothing is reserved in Cinder", async () => {
  const [plain, good] = [newVolume(), newVolume({ isBootable: true })];
  expect(await create([root(plain)])).toMatchObject({
    status: 400,
    json: { badRequest: { message: `Block Device ${plain} is not bootable.` } },
  });
  const bad = newVolume({ status: "error" });
  expect((await create([root(good), root(bad, { boot_index: -1 })])).status).toBe(400);
  expect([find(good)?.status, await attachmentsOf(good)]).toEqual(["available", []]);
});

test("a move connects the volume to the new host, and the attachment of the one that was left ends", async () => {
  const [server, id] = [await boot(), newVolume()];
  await attach(server, id);
  await isIn(id, "in-use");
  const from = (await show(server))["OS-EXT-SRV-ATTR:host"];
  const migrate = { "os-migrateLive": { host: null, block_migration: "auto" } };
  await eventually(
    "the move to be taken",
    async () => (await cloud.call("POST", `/v2.1/servers/${server}/action`, migrate)).status === 202,
  );
  await eventually("the server to be on the other host", async () => {
    const now = await show(server);
    return now["OS-EXT-SRV-ATTR:host"] !== from && now["OS-EXT-STS:task_state"] === null;
  });
  const host = (await show(server))["OS-EXT-SRV-ATTR:host"];
  expect(find(id)?.attachedTo.map((one) => one.host)).toContain(host);
  await eventually(
    "one attachment",
    () =>
      find(id)
        ?.attachedTo.map((one) => one.host)
        .join() === host,
  );
  const [{ id: attachmentId } = { id: "" }] = await attachmentsOf(id);
  expect(await listed(server)).toMatchObject([{ volumeId: id, attachment_id: attachmentId }]);
});

test("an attachment that nothing names ends, and those of servers that are not Berth's are left alone", async () => {
  const [server, orphan, other] = [await boot(), newVolume(), newVolume()];
  const reserve = (volumeId: string, serverUuid: string) =>
    cinder.reserve({ volumeId, serverUuid, connector: null }, { callerToken: null, requestId: null });
  await reserve(other, randomUUID());
  await reserve(orphan, server);
  await isIn(orphan, "available");
  expect(await attachmentsOf(other)).toHaveLength(1);
});

test("a call whose answer from Cinder is lost is refused with 503, and the volume stays reserved for the settler", async () => {
  const [server, id] = [await boot(), newVolume()];
  cinder.fate = (method) => (method === "reserve" ? "lost" : "answered");
  expect((await attach(server, id)).status).toBe(503);
  expect(await attachmentsOf(id)).toHaveLength(1);
  cinder.fate = () => "answered";
  expect((await attach(server, id)).status).toBe(400);
});

test("a server's end releases its volume also if Cinder is away at first", async () => {
  const [server, id] = [await boot(), newVolume()];
  await attach(server, id);
  await isIn(id, "in-use");
  await eventually("the attachment to be done", async () => (await show(server))["OS-EXT-STS:task_state"] === null);
  cinder.fate = () => "silent";
  await cloud.call("DELETE", `/v2.1/servers/${server}`);
  await eventually("the server to be gone", async () => (await show(server)) === undefined);
  expect(find(id)?.status).toBe("in-use");
  cinder.fate = () => "answered";
  await isIn(id, "available");
  expect(await attachmentsOf(id)).toEqual([]);
});
