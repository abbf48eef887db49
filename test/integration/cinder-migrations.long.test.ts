import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const cinder = new MemoryBlockStorage({ newId: randomUUID });
let cloud: TestCloud;
/** Volumes with attachments that no row of Berth's names: of a server of Berth, and of somebody else's server. */
let stray: { readonly own: string; readonly foreign: string };
beforeAll(async () => {
  const inventories = { VCPU: { total: 32 }, MEMORY_MB: { total: 8_192 }, DISK_GB: { total: 100 } };
  cloud = await startTestCloud({
    ...{ cells: [{ name: "c-1", hosts: [{ name: "h-0", inventories }] }], schedulers: 1, conductors: 1 },
    ...{ volumes: "cinder", blockStorage: cinder },
  });
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
  stray = { own: newVolume(), foreign: newVolume() };
  const reserve = (volumeId: string, serverUuid: string) =>
    cinder.reserve({ volumeId, serverUuid, connector: null }, { callerToken: null, requestId: null });
  await reserve(stray.own, (await withVolume()).server);
  await reserve(stray.foreign, randomUUID());
});
afterAll(() => cloud?.close());

const show = async (id: string) => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
const find = (id: string) => cinder.all().find((volume) => volume.id === id);
const newVolume = (values: object = {}): string => cinder.putVolume({ projectId: "any", ...values }).id;
const rests = (id: string) =>
  eventually("the server to rest", async () => {
    const { status, "OS-EXT-STS:task_state": task } = await show(id);
    return !["BUILD"].includes(status) && task === null;
  });
/** A server that runs with a volume of Cinder. */
async function withVolume(values: object = {}): Promise<{ readonly server: string; readonly id: string }> {
  const { json } = await cloud.call("POST", "/v2.1/servers", {
    server: { name: "s", flavorRef: "s", imageRef: "", networks: "none" },
  });
  const server = json.server.id;
  await rests(server);
  const id = newVolume(values);
  await cloud.call("POST", `/v2.1/servers/${server}/os-volume_attachments`, { volumeAttachment: { volumeId: id } });
  await eventually("the volume to be attached", () => find(id)?.status === "in-use");
  await rests(server);
  return { server, id };
}
const swap = (server: string, id: string, volumeId: string, minor?: number) =>
  cloud.call("PUT", `/v2.1/servers/${server}/os-volume_attachments/${id}`, { volumeAttachment: { volumeId } }, minor);
/** Swaps as soon as the server has ended what it was doing. */
const swapAtRest = (server: string, id: string, volumeId: string, minor?: number) =>
  eventually("the call to be taken", async () => {
    const answer = await swap(server, id, volumeId, minor);
    return answer.status === 409 && /task_state/.test(JSON.stringify(answer.json)) ? false : answer;
  });
const attachmentsTo = async (server: string) => (await cinder.attachments({ serverUuid: server })).length;

test.each([84, 85])("Cinder replaces a server's volume when it migrates it, at 2.%i", async (minor) => {
  const { server, id } = await withVolume();
  const { id: other } = cinder.startMigration(id);
  expect(await swapAtRest(server, id, other, minor)).toMatchObject({ status: 202, json: null });
  await eventually("the migration to end", () => find(id)?.migrationStatus === "success");
  await rests(server);
  expect([find(other), find(id)?.status, await attachmentsTo(server)]).toEqual([undefined, "in-use", 1]);
  const { json } = await cloud.call("GET", `/v2.1/servers/${server}/os-instance-actions`);
  expect(json.instanceActions[0]).toMatchObject({ action: "swap_volume", message: null });
  const listed = async () =>
    (await cloud.call("GET", `/v2.1/servers/${server}/os-volume_attachments`)).json.volumeAttachments;
  expect(await listed()).toMatchObject([{ volumeId: id }]);
  // The sweep that corrects the attachment's id takes some time, so only one of the two waits for it.
  if (minor === 84) return;
  const [attachment] = find(id)?.attachedTo ?? [];
  await eventually(
    "the api to know its attachment",
    async () => (await listed())[0].attachment_id === attachment?.attachmentId,
  );
  const detach = () => cloud.call("DELETE", `/v2.1/servers/${server}/os-volume_attachments/${id}`);
  await eventually("the detachment to be taken", async () => (await detach()).status === 202);
  await eventually("the volume to be free", () => find(id)?.status === "available");
  expect(await attachmentsTo(server)).toBe(0);
});

test("a volume that is not migrated, or another volume that does not fit, is refused as by Nova, and nothing is reserved", async () => {
  const { server, id } = await withVolume({ sizeGib: 2 });
  const refused = async (volumeId: string, of = id) => {
    const { status, json } = await swapAtRest(server, of, volumeId);
    return [status, json[Object.keys(json)[0] ?? ""].message];
  };
  const missing = randomUUID();
  expect(await refused(newVolume(), missing)).toEqual([404, `No volume Block Device Mapping with id ${missing}.`]);
  expect(await refused(newVolume())).toEqual([
    409,
    `volume ${id} is not migrating; this API should only be called by Cinder`,
  ]);
  const { id: target } = cinder.startMigration(id);
  expect(await refused(missing)).toEqual([400, `Volume ${missing} could not be found.`]);
  const used = await withVolume();
  expect(await refused(used.id)).toEqual([400, "Invalid volume: New volume must be detached in order to swap."]);
  expect(await refused(newVolume({ sizeGib: 1 }))).toEqual([
    400,
    "Invalid volume: New volume must be the same size or larger.",
  ]);
  expect(await refused(newVolume({ sizeGib: 2 }))).toEqual([400, expect.stringContaining(`must be "target:${id}"`)]);
  await cloud.call("POST", `/v2.1/servers/${server}/action`, { "os-stop": null });
  await rests(server);
  expect(await refused(target)).toEqual([
    409,
    `Cannot 'swap_volume' instance ${server} while it is in vm_state stopped`,
  ]);
  expect([find(target)?.status, await attachmentsTo(server)]).toEqual(["available", 1]);
});

test("of two calls for one volume one is taken, and a server that is deleted in the middle leaves both volumes to Cinder", async () => {
  const { server, id } = await withVolume();
  const { id: other } = cinder.startMigration(id);
  cinder.fate = (method) => (method === "endMigration" ? "silent" : "answered");
  expect((await swapAtRest(server, id, newVolume({ sizeGib: 0 }))).status).toBe(400);
  const answers = await Promise.all([swap(server, id, other), swap(server, id, other)]);
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
  await eventually("Cinder to be told", () => find(id)?.attachedTo.length === 0);
  await cloud.call("DELETE", `/v2.1/servers/${server}`);
  // The server is shown for as long as Cinder has its volume.
  await eventually("the cell to have deleted the server", async () =>
    (await cloud.call("GET", "/v2.1/servers")).json.servers.every((one: { id: string }) => one.id !== server),
  );
  // Its guest has written to the other volume, which stays attached until Cinder has learned that: `owed-replacement.test.ts` lets that time pass.
  const statuses = () => [find(id)?.migrationStatus, find(other)?.migrationStatus, find(other)?.status];
  expect(statuses()).toEqual(["migrating", `target:${id}`, "in-use"]);
  expect(await attachmentsTo(server)).toBe(1);
  cinder.fate = () => "answered";
});

test("an attachment that nothing names ends after a minute, and those of servers that are not Berth's are left alone", async () => {
  await eventually("the volume to be free", () => find(stray.own)?.status === "available", { withinMs: 180_000 });
  expect(await cinder.attachments({ volumeId: stray.foreign })).toHaveLength(1);
});
