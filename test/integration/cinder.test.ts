import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { ServerSpec } from "../../proto/gen/berth/shared.ts";
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
  cinder.newStatus = "creating";
});
afterAll(() => cloud?.close());

const show = async (id: string) => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
const find = (id: string) => cinder.all().find((volume) => volume.id === id);
const isIn = (id: string, status: string | undefined) =>
  eventually(`volume ${id} to be ${status}`, () => find(id)?.status === status);
/** Waits until the server's attachment is done. */
const isIdle = (server: string) =>
  eventually(`server ${server} to be idle`, async () => (await show(server))["OS-EXT-STS:task_state"] === null);
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
const specOf = (server: string): Promise<ServerSpec> =>
  withClient(cloud.databaseUrl, async (client) => {
    const text = "select spec from requests where server_uuid = $1";
    const { rows } = await client.query<{ spec: Uint8Array }>(text, [server]);
    return ServerSpec.decode(rows[0]?.spec ?? new Uint8Array());
  });
const root = (uuid: string, fields: object = {}) => ({
  ...{ source_type: "volume", destination_type: "volume", uuid, boot_index: 0, ...fields },
});

test("a volume of Cinder is attached to a server, and detached, after which Cinder has no attachment of it", async () => {
  const [server, id] = [await boot(), newVolume()];
  expect((await attach(server, id)).status).toBe(200);
  await isIn(id, "in-use");
  await isIdle(server);
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
    json: { badRequest: { message: expect.stringContaining("currently has a status of: error") } },
  });
  expect(await listed(other)).toEqual([]);
});

test("several servers have a volume that allows it, and one that loses it or ends leaves it to the others", async () => {
  const id = newVolume({ isMultiattach: true });
  const [one, other] = [await boot(), await boot()];
  const disk = newVolume({ isBootable: true });
  const third = await boot([root(disk), root(id, { boot_index: -1, delete_on_termination: true })]);
  for (const server of [one, other]) {
    expect((await attach(server, id)).status).toBe(200);
    // Cinder refuses a volume that is being attached to somebody else.
    await isIn(id, "in-use");
  }
  const users = () =>
    find(id)
      ?.attachedTo.map(({ serverUuid }) => serverUuid)
      .toSorted();
  await eventually("all three to have it", () => users()?.length === 3);
  expect(users()).toEqual([one, other, third].toSorted());
  // Cinder has the attachment a moment before the server is idle, and a busy server is answered with 409.
  await isIdle(one);
  const twice = await attach(one, id);
  expect([twice.status, twice.json.badRequest.message]).toEqual([400, `Invalid volume: volume ${id} already attached`]);
  const old = await cloud.call("POST", urlOf(await boot()), { volumeAttachment: { volumeId: id } }, 59);
  expect([old.status, old.json.badRequest.message]).toEqual([
    400,
    "Multiattach volumes are only supported starting with compute API version 2.60.",
  ]);
  await eventually("the detachment to be taken", async () => (await detach(one, id)).status === 202);
  await eventually("the other two to have it", () => users()?.length === 2);
  await eventually("the api to know", async () => (await phases(third)).join() === "attached,attached");
  await cloud.call("DELETE", `/v2.1/servers/${third}`);
  await eventually("the other server to have it alone", () => users()?.join() === other);
  expect([find(id)?.status, await listed(other)]).toMatchObject(["in-use", [{ volumeId: id }]]);
  expect([await listed(one), await phases(one), await phases(third)]).toEqual([[], [], []]);
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

test("a call whose answer from Cinder is lost is refused with 503, and the volume stays reserved for the settler", async () => {
  const [server, id] = [await boot(), newVolume()];
  cinder.fate = (method) => (method === "reserve" ? "lost" : "answered");
  expect((await attach(server, id)).status).toBe(503);
  expect(await attachmentsOf(id)).toHaveLength(1);
  cinder.fate = () => "answered";
  expect((await attach(server, id)).status).toBe(400);
});

test("a server's end releases its volume also if Cinder is away at first, and until then the server is being deleted", async () => {
  const [server, id] = [await boot(), newVolume()];
  await attach(server, id);
  await isIn(id, "in-use");
  await isIdle(server);
  cinder.fate = () => "silent";
  await cloud.call("DELETE", `/v2.1/servers/${server}`);
  const listedServers = async () => (await cloud.call("GET", "/v2.1/servers")).json.servers;
  await eventually("the cell to have deleted the server", async () =>
    (await listedServers()).every((other: { id: string }) => other.id !== server),
  );
  expect(await show(server)).toMatchObject({ status: "ACTIVE", "OS-EXT-STS:task_state": "deleting" });
  expect(find(id)?.status).toBe("in-use");
  cinder.fate = () => "answered";
  await isIn(id, "available");
  await eventually("the server to be gone", async () => (await show(server)) === undefined);
  expect(await attachmentsOf(id)).toEqual([]);
});

describe("a volume that is made with a server", () => {
  const made = (fields: object) => ({ destination_type: "volume", volume_size: 2, boot_index: -1, ...fields });
  const image = async (fields: object = {}): Promise<string> => {
    const named = { name: "i", disk_format: "raw", container_format: "bare", ...fields };
    return (await cloud.call("POST", "/image/v2/images", named)).json.id;
  };
  const ofServer = (id: string) => cinder.all().filter(({ name }) => name.startsWith(id));
  const statusOf = async (id: string) => (await show(id))?.status;
  test("is filled from an image, which counts for the server, and ends with it if its owner wished so", async () => {
    const uuid = await image({ hw_disk_bus: "scsi" });
    const snapshot = cinder.putSnapshot(newVolume({ sizeGib: 5 })).id;
    const { status, json } = await create([
      made({ source_type: "image", uuid, boot_index: 0, delete_on_termination: true, tag: "disk1" }),
      made({ source_type: "blank", volume_size: "3", device_name: "/dev/vdf" }),
      { source_type: "snapshot", destination_type: "volume", uuid: snapshot },
    ]);
    expect([status, json]).toEqual([202, expect.anything()]);
    const { id } = json.server;
    await eventually("Cinder to be asked", () => ofServer(id).length === 3);
    expect(ofServer(id).map(({ sizeGib, isBootable }) => [sizeGib, isBootable])).toEqual([
      [2, true],
      [3, false],
      [5, true],
    ]);
    expect(await statusOf(id)).toBe("BUILD");
    for (const volume of ofServer(id)) cinder.finishCreating(volume.id);
    await eventually("the server to run", async () => (await statusOf(id)) === "ACTIVE");
    const [root, blank] = ofServer(id).map((volume) => volume.id);
    await eventually("the api to know of all", async () => (await phases(id)).join() === "attached,attached,attached");
    expect(await listed(id)).toMatchObject([
      { volumeId: root, device: "/dev/vda", tag: "disk1", delete_on_termination: true },
      { volumeId: blank, device: "/dev/vdf", delete_on_termination: false },
      { delete_on_termination: false },
    ]);
    expect((await specOf(id)).imageProperties).toMatchObject({ hw_disk_bus: "scsi" });
    expect(await show(id)).toMatchObject({ image: "" });
    await cloud.call("DELETE", `/v2.1/servers/${id}`);
    await isIn(root ?? "", undefined);
    await isIn(blank ?? "", "available");
  });

  test("is made for each of several servers of one call", async () => {
    cinder.newStatus = "available";
    const mapping = made({ source_type: "image", uuid: await image(), boot_index: 0 });
    const { json } = await cloud.call("POST", "/v2.1/servers", {
      server: {
        ...{ name: "m", flavorRef: "s", networks: "none", min_count: 2, return_reservation_id: true },
        block_device_mapping_v2: [mapping],
      },
    });
    const query = `/v2.1/servers?reservation_id=${json.reservation_id}`;
    const servers = async (): Promise<readonly { id: string }[]> => (await cloud.call("GET", query)).json.servers;
    await eventually("both to run", async () => {
      const all = await Promise.all((await servers()).map(({ id }) => statusOf(id)));
      return all.join() === "ACTIVE,ACTIVE";
    });
    for (const { id } of await servers()) expect(ofServer(id)).toMatchObject([{ attachedTo: [{ serverUuid: id }] }]);
  });

  test("is not made for servers beyond the quota", async () => {
    cinder.newStatus = "available";
    const url = `/v2.1/os-quota-sets/${(await show(await boot())).tenant_id}`;
    const { json } = await cloud.call("GET", `${url}/detail`);
    await cloud.call("PUT", url, { quota_set: { instances: json.quota_set.instances.in_use + 1 } });
    let asked = 0;
    cinder.fate = (method) => {
      if (method === "createVolume") asked += 1;
      return "answered";
    };
    const mapping = made({ source_type: "image", uuid: await image(), boot_index: 0 });
    const call = () =>
      cloud.call("POST", "/v2.1/servers", {
        server: {
          ...{ name: "q", flavorRef: "s", networks: "none", min_count: 1, max_count: 3 },
          block_device_mapping_v2: [mapping],
        },
      });
    expect([(await call()).status, asked]).toEqual([202, 1]);
    expect([(await call()).status, asked]).toEqual([403, 1]);
    await cloud.call("DELETE", url);
  });

  test("is deleted when Cinder cannot make it or another one, and the server says why", async () => {
    const blank = made({ source_type: "blank" });
    const { json } = await create([made({ source_type: "image", uuid: await image(), boot_index: 0 }), blank]);
    const { id } = json.server;
    await eventually("Cinder to be asked", () => ofServer(id).length === 2);
    const [root, data] = ofServer(id).map((volume) => volume.id);
    cinder.finishCreating(root ?? "", "error");
    await eventually("the build to fail", async () => (await statusOf(id)) === "ERROR");
    expect((await show(id)).fault.message).toContain(`Volume ${root} could not be made`);
    await isIn(root ?? "", undefined);
    // Cinder still fills it, and is asked again when it has done so.
    expect(find(data ?? "")?.status).toBe("creating");
    cinder.finishCreating(data ?? "");
    await eventually("the other volume to go", () => ofServer(id).length === 0, { withinMs: 30_000 });
  });

  test("is deleted when a later one is refused, and nothing is accepted", async () => {
    cinder.newStatus = "available";
    const before = cinder.all().length;
    const uuid = await image();
    const answer = await create([
      made({ source_type: "image", uuid, boot_index: 0 }),
      made({ source_type: "blank", volume_type: "gold" }),
    ]);
    expect([answer.status, answer.json.badRequest?.message]).toEqual([400, expect.stringContaining("gold")]);
    expect(cinder.all()).toHaveLength(before);
  });

  test.each([
    ["a blank boot disk", { source_type: "blank", boot_index: 0 }, /nothing to boot from/],
    ["a blank volume without a size", { source_type: "blank", volume_size: 0 }, /need to have non-zero size/],
    ["an unknown snapshot", { source_type: "snapshot", uuid: randomUUID() }, /failed to get snapshot/],
    ["a size that is none", { source_type: "blank", volume_size: "big" }, /volume_size.*big/],
  ])("is refused for %s", async (_title, fields, message) => {
    const root_ = root(newVolume({ isBootable: true }));
    const mappings = "boot_index" in fields ? [made(fields)] : [root_, made(fields)];
    const answer = await create(mappings);
    expect([answer.status, answer.json.badRequest?.message]).toEqual([400, expect.stringMatching(message)]);
  });

  test("is refused if it is smaller than its image, and a server if its memory is less than the image of its volume needs", async () => {
    const uuid = await image({ min_disk: 4 });
    const small = await create([made({ source_type: "image", uuid, boot_index: 0 })]);
    const little = await create([root(newVolume({ isBootable: true, imageProperties: { min_ram: "128" } }))]);
    expect([small, little].map(({ status, json }) => [status, json.badRequest?.message])).toEqual([
      [400, expect.stringContaining("Volume is smaller than the minimum size specified in image metadata")],
      [400, expect.stringContaining("memory is too small for requested image")],
    ]);
  });
});

test("the properties of the image that a boot volume was filled from count for its server, without those of the image's file", async () => {
  const imageProperties = {
    hw_disk_bus: "scsi",
    os_type: "linux",
    disk_format: "qcow2",
    image_id: randomUUID(),
    min_ram: "0",
  };
  const id = await boot([root(newVolume({ isBootable: true, imageProperties }))]);
  const server = await show(id);
  expect(server.image).toBe("");
  expect((await specOf(id)).imageProperties).toEqual({ hw_disk_bus: "scsi", os_type: "linux" });
});

test("a volume that several servers may have is refused before 2.60", async () => {
  const [server, id] = [await boot(), newVolume({ isMultiattach: true })];
  const answer = await cloud.call("POST", urlOf(server), { volumeAttachment: { volumeId: id } }, 59);
  expect(answer).toMatchObject({ status: 400, json: { badRequest: { message: expect.stringContaining("2.60") } } });
});
