import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
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
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "disk", name: "disk", vcpus: 1, ram: 64, disk: 1 } });
}, 120_000);
afterEach(() => {
  cinder.fate = () => "answered";
  cinder.newStatus = "creating";
  cinder.snapshotsMax = Number.POSITIVE_INFINITY;
});
afterAll(() => cloud?.close());

const show = async (id: string) => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
const newVolume = (values: object = {}): string => cinder.putVolume({ projectId: "any", ...values }).id;
const mapped = (uuid: string, fields: object = {}) => ({
  ...{ source_type: "volume", destination_type: "volume", uuid, boot_index: -1, ...fields },
});
const create = (fields: object) =>
  cloud.call("POST", "/v2.1/servers", { server: { name: "s", flavorRef: "s", networks: "none", ...fields } });
const running = async ({ status, json }: Awaited<ReturnType<typeof create>>): Promise<string> => {
  expect([status, json]).toEqual([202, expect.anything()]);
  await eventually("the server to run", async () => (await show(json.server.id)).status === "ACTIVE");
  return json.server.id;
};
/** A server with a boot volume of an image with properties, and another volume. */
async function boot(): Promise<{ readonly server: string; readonly root: string; readonly data: string }> {
  const imageProperties = { hw_disk_bus: "scsi", min_ram: "64" };
  const [root, data] = [newVolume({ isBootable: true, sizeGib: 5, imageProperties }), newVolume({ sizeGib: 2 })];
  const mapping = [mapped(root, { boot_index: 0 }), mapped(data, { delete_on_termination: true })];
  const server = await running(await create({ imageRef: "", block_device_mapping_v2: mapping }));
  for (const id of [root, data])
    await eventually("it to be in use", () => cinder.all().find((one) => one.id === id)?.status === "in-use");
  return { server, root, data };
}
const act = (server: string, body: object) => cloud.call("POST", `/v2.1/servers/${server}/action`, body);
const imageOf = async (id: string) => (await cloud.call("GET", `/image/v2/images/${id}`)).json;
const snapshotsOf = (image: string) => cinder.allSnapshots().filter(({ metadata }) => metadata.berth_image === image);
const actionsOf = async (server: string) => {
  const url = `/v2.1/servers/${server}/os-instance-actions`;
  const [{ request_id }] = (await cloud.call("GET", url)).json.instanceActions;
  return (await cloud.call("GET", `${url}/${request_id}`)).json.instanceAction;
};
const ended = (server: string) =>
  eventually("the action to end", async () => {
    const action = await actionsOf(server);
    return action.action === "createImage" && action.events[0].finish_time !== null && action;
  });

test("an image of a server that boots from a volume consists of snapshots, and is active when they are made", async () => {
  const { server, root, data } = await boot();
  const answer = await act(server, { createImage: { name: "mine", metadata: { purpose: "test" } } });
  expect([answer.status, answer.json]).toEqual([202, { image_id: expect.any(String) }]);
  const { image_id } = answer.json;
  const snapshots = snapshotsOf(image_id);
  expect(snapshots).toMatchObject([
    { volumeId: root, name: "snapshot for mine", status: "creating" },
    { volumeId: data, status: "creating" },
  ]);
  expect(["queued", "saving"]).toContain((await imageOf(image_id)).status);
  expect(await actionsOf(server)).toMatchObject({
    ...{ action: "createImage", message: null },
    events: [{ event: "api_snapshot_instance", finish_time: null, result: null }],
  });
  expect((await cloud.call("DELETE", `/image/v2/images/${image_id}`)).status).toBe(409);
  for (const { id } of snapshots) cinder.finishCreating(id);
  const active = async () => (await imageOf(image_id)).status === "active";
  await eventually("the image to be active", active, { everyMs: 100, withinMs: 60_000 });
  const image = await imageOf(image_id);
  expect(image).toMatchObject({
    ...{ name: "mine", visibility: "private", purpose: "test", hw_disk_bus: "scsi", min_ram: 64 },
    ...{ bdm_v2: "True", root_device_name: "/dev/vda" },
  });
  expect(JSON.parse(image.block_device_mapping)).toMatchObject([
    { source_type: "snapshot", snapshot_id: snapshots[0]?.id, boot_index: 0, volume_size: 5 },
    { snapshot_id: snapshots[1]?.id, boot_index: -1, volume_size: 2, delete_on_termination: true },
  ]);
  expect(await ended(server)).toMatchObject({ message: null, events: [{ result: "Success" }] });
});

test("an image whose snapshots cannot all be made goes with those that were made, and the action says why", async () => {
  const { server } = await boot();
  cinder.snapshotsMax = cinder.allSnapshots().length + 1;
  const before = cinder.allSnapshots().length;
  const refused = await act(server, { createImage: { name: "half" } });
  expect([refused.status, refused.json.forbidden.message]).toEqual([403, "Quota exceeded for resources: snapshots"]);
  const [left, ...others] = cinder.allSnapshots().filter(({ name }) => name === "snapshot for half");
  expect([left?.status, others]).toEqual(["creating", []]);
  expect(await ended(server)).toMatchObject({
    ...{ message: "Error", events: [{ result: "Error", details: "Quota exceeded for resources: snapshots" }] },
  });
  cinder.finishCreating(left?.id ?? "");
  const slowly = { everyMs: 100, withinMs: 60_000 };
  await eventually("the snapshot to be deleted", () => cinder.allSnapshots().length === before, slowly);
  const image = left?.metadata.berth_image ?? "";
  await eventually("the image to go", async () => (await imageOf(image)).status === undefined, slowly);
});

/** An active image of a server with two volumes, and its snapshots. */
async function madeImage() {
  const { server } = await boot();
  cinder.newStatus = "available";
  const { image_id } = (await act(server, { createImage: { name: "made", metadata: { os_type: "linux" } } })).json;
  const active = async () => (await imageOf(image_id)).status === "active";
  await eventually("the image to be active", active, { everyMs: 100, withinMs: 60_000 });
  return { image: image_id as string, snapshots: snapshotsOf(image_id).map(({ id }) => id) };
}
const volumesOf = (server: string) =>
  cinder
    .all()
    .filter(({ name }) => name.startsWith(server))
    .map(({ snapshotId, sizeGib }) => [snapshotId, sizeGib]);
const listed = async (server: string) => {
  const url = `/v2.1/servers/${server}/os-volume_attachments`;
  return (await cloud.call("GET", url)).json.volumeAttachments.map(
    (one: { device: string; delete_on_termination: boolean }) => [one.device, one.delete_on_termination],
  );
};
const specOf = async (id: string) => (await cloud.cells[0]?.store.servers([id]))?.[0]?.spec;

test("servers of such an image boot from new volumes of its snapshots", async () => {
  const { image, snapshots } = await madeImage();
  const given = { source_type: "image", destination_type: "local", uuid: image, boot_index: 0 };
  for (const fields of [{}, { block_device_mapping_v2: [{ ...given, delete_on_termination: true }] }]) {
    const id = await running(await create({ imageRef: image, ...fields }));
    expect(volumesOf(id)).toEqual([
      [snapshots[0], 5],
      [snapshots[1], 2],
    ]);
    await eventually("the api to know them", async () => (await listed(id)).length === 2);
    expect(await listed(id)).toEqual([
      ["/dev/vda", false],
      ["/dev/vdb", true],
    ]);
    const spec = await specOf(id);
    expect(await show(id)).toMatchObject({ image: "" });
    expect(spec).toMatchObject({ imageRef: "", imageProperties: { hw_disk_bus: "scsi", os_type: "linux" } });
    expect(Object.keys(spec?.imageProperties ?? {})).not.toContain("block_device_mapping");
  }
  const several = await create({ imageRef: image, min_count: 2, return_reservation_id: true });
  expect(several.status).toBe(202);
});

test("a device of the call counts instead of the image's of the same name, and can take it away", async () => {
  const { image, snapshots } = await madeImage();
  const blank = { source_type: "blank", destination_type: "volume", volume_size: 4, device_name: "vdb" };
  const replaced = await running(await create({ imageRef: image, block_device_mapping_v2: [blank] }));
  expect(volumesOf(replaced).toSorted()).toEqual(
    [
      [null, 4],
      [snapshots[0], 5],
    ].toSorted(),
  );
  const none = { source_type: "blank", destination_type: "volume", device_name: "/dev/vdb", no_device: true };
  const without = await running(await create({ imageRef: image, block_device_mapping_v2: [none] }));
  expect(volumesOf(without)).toEqual([[snapshots[0], 5]]);
  const own = newVolume({ isBootable: true, sizeGib: 6 });
  const root = mapped(own, { boot_index: 0, device_name: "/dev/vda" });
  const other = await running(await create({ imageRef: image, block_device_mapping_v2: [root] }));
  expect(volumesOf(other)).toEqual([[snapshots[1], 2]]);
  expect((await specOf(other))?.imageProperties).toMatchObject({ hw_disk_bus: "scsi" });
});

test("nothing else is made of such an image, and none of one whose mapping is none, or whose snapshots are gone", async () => {
  const { image, snapshots } = await madeImage();
  const disk = { source_type: "image", destination_type: "volume", volume_size: 9, uuid: image, boot_index: 0 };
  const plain = (await cloud.call("POST", "/image/v2/images", { name: "plain", disk_format: "raw" })).json.id;
  const server = await running(await create({ imageRef: plain, flavorRef: "disk" }));
  const broken = { name: "x", disk_format: "raw", bdm_v2: "true", block_device_mapping: "{}" };
  const other = (await cloud.call("POST", "/image/v2/images", broken)).json.id;
  const answers = [
    await create({ imageRef: "", block_device_mapping_v2: [disk] }),
    await act(server, { rebuild: { imageRef: image } }),
    await act(server, { rescue: { rescue_image_ref: image } }),
    await create({ imageRef: other }),
  ];
  for (const id of snapshots) await cinder.removeSnapshot(id, { callerToken: null, requestId: null });
  answers.push(await create({ imageRef: image }));
  expect(answers.map(({ status, json }) => [status, json.badRequest?.message])).toEqual([
    [400, expect.stringContaining("create a server from it (imageRef)")],
    [400, expect.stringContaining("consists of snapshots of volumes")],
    [400, `Requested rescue image '${image}' is not supported`],
    [400, expect.stringContaining("is no list of devices in JSON")],
    [400, `Block Device Mapping is Invalid: failed to get snapshot ${snapshots[0]}.`],
  ]);
});

test("what cannot be done to a server that boots from a volume is refused, and leaves nothing", async () => {
  const { server } = await boot();
  const before = cinder.allSnapshots().length;
  const backup = await act(server, { createBackup: { name: "b", backup_type: "daily", rotation: 1 } });
  expect([backup.status, backup.json.badRequest.message]).toEqual([
    ...[400, "Backup is not supported for volume-backed instances."],
  ]);
  cinder.fate = (method) => (method === "createSnapshot" ? "silent" : "answered");
  const silent = await act(server, { createImage: { name: "silent" } });
  expect([silent.status, cinder.allSnapshots().length]).toEqual([503, before]);
  cinder.fate = () => "answered";
  await cloud.call("DELETE", `/v2.1/servers/${server}`);
});
