import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { ImageDirectory } from "../../adapters/images/image-directory.ts";
import { WantedImages } from "../../adapters/images/wanted-images.ts";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { GlanceClient } from "../../adapters/openstack/glance-client.ts";
import { NeighbourClient } from "../../adapters/openstack/neighbour-client.ts";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import { systemClock } from "../../runtime/clock.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import type { GlanceParts } from "../../services/api/image/open-glance.ts";
import { eventually } from "../rigs/eventually.ts";
import { type FakeGlance, startFakeGlance } from "../rigs/fake-glance.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const cinder = new MemoryBlockStorage({ newId: randomUUID });
let cloud: TestCloud;
let glance: FakeGlance;
let parts: GlanceParts;
let dir: string;
beforeAll(async () => {
  glance = await startFakeGlance();
  dir = join(makeOwnedDir("cinder-rebuilds"), randomUUID());
  mkdirSync(dir);
  parts = glanceParts();
  const inventories = { VCPU: { total: 32 }, MEMORY_MB: { total: 8_192 }, DISK_GB: { total: 100 } };
  cloud = await startTestCloud({
    ...{ cells: [{ name: "c-1", hosts: [{ name: "h-0", inventories }] }], schedulers: 1, conductors: 1 },
    ...{ volumes: "cinder", blockStorage: cinder, glance: parts },
  });
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
}, 120_000);
afterEach(() => {
  cinder.fate = () => "answered";
  cinder.holdsReimages = false;
});
afterAll(async () => {
  await cloud?.close();
  await glance?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** A client of Glance that needs no Keystone. */
function glanceParts(): GlanceParts {
  const token = { text: "service-token", catalogue: [], expiresAtMs: Number.POSITIVE_INFINITY };
  const session = { token: async () => token, refused: async () => undefined };
  const reach = { service: "Glance", types: ["image"], interface: "internal", region: null, url: glance.url } as const;
  const neighbour = new NeighbourClient({ session, clock: systemClock }, { ...reach, timeoutMs: 30_000, triesMax: 1 });
  return {
    ...{ client: new GlanceClient(neighbour), close: () => neighbour.close() },
    ...{ files: new ImageDirectory(dir), wanted: new WantedImages(dir, systemClock, randomBytes(32)) },
  };
}

/** Registers an image with bits. Returns its id. */
async function upload(fields: object = {}): Promise<string> {
  const headers = { "x-auth-token": "service-token", "content-type": "application/octet-stream" };
  const about = { id: randomUUID(), name: "i", disk_format: "raw", container_format: "bare", ...fields };
  await fetch(`${glance.url}/v2/images`, { method: "POST", headers, body: JSON.stringify(about) });
  await fetch(`${glance.url}/v2/images/${about.id}/file`, { method: "PUT", headers, body: Buffer.from("disk") });
  return about.id;
}

/** A machine that has much other work to do. */
const PATIENT = { withinMs: 100_000 };
const show = async (id: string) => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
const find = (id: string) => cinder.all().find((volume) => volume.id === id);
const isIn = (id: string, status: string | undefined) =>
  eventually(`volume ${id} to be ${status}`, () => find(id)?.status === status, PATIENT);

const rebuilding = async () => {
  const [before, after] = [await upload(), await upload()];
  const disk = cinder.putVolume({ projectId: "any", isBootable: true, imageProperties: { image_id: before } }).id;
  const root = { source_type: "volume", destination_type: "volume", uuid: disk, boot_index: 0 };
  const mappings = [{ ...root, delete_on_termination: true }];
  const fields = { name: "s", flavorRef: "s", imageRef: "", networks: "none", block_device_mapping_v2: mappings };
  const { status, json } = await cloud.call("POST", "/v2.1/servers", { server: fields });
  expect([status, json]).toEqual([202, expect.anything()]);
  const server: string = json.server.id;
  await eventually("the server to run", async () => (await show(server))?.status === "ACTIVE", PATIENT);
  await isIn(disk, "in-use");
  const rebuild = (imageRef: string, minor: number) =>
    cloud.call("POST", `/v2.1/servers/${server}/action`, { rebuild: { imageRef } }, minor);
  const isDone = () =>
    eventually(
      "the rebuilt server to run, without an image as before",
      async () => {
        const { status, image, fault, "OS-EXT-STS:task_state": taskState } = (await show(server)) ?? {};
        if (taskState !== null) return false;
        if (status === "ERROR") throw new Error(fault?.message ?? "ERROR, without a reason");
        return status === "ACTIVE" && image === "";
      },
      PATIENT,
    );
  return { ...{ before, after, disk, server }, rebuild, isDone };
};

test("a rebuild fills the boot volume with the image from microversion 2.93 on, also with the same one, as an action of Nova's name", async () => {
  const { after, disk, server, rebuild, isDone } = await rebuilding();
  let fills = 0;
  cinder.fate = (method) => {
    if (method === "reimage") fills += 1;
    return "answered";
  };
  for (const imageRef of [after, after]) {
    const answer = await rebuild(imageRef, 93);
    expect([answer.status, answer.json.server?.image]).toEqual([202, ""]);
    await isDone();
    expect(find(disk)).toMatchObject({ status: "in-use", imageProperties: { image_id: after } });
  }
  expect(fills).toBe(2);
  const url = `/v2.1/servers/${server}/os-instance-actions`;
  const latest = async () => (await cloud.call("GET", url)).json.instanceActions?.[0];
  await eventually("the action of Nova's name", async () => (await latest())?.action === "rebuild");
  const { request_id } = await latest();
  await eventually("the event of Nova's name", async () => {
    const [event] = (await cloud.call("GET", `${url}/${request_id}`)).json.instanceAction?.events ?? [];
    return event?.event === "compute_rebuild_instance" && event.result === "Success";
  });
});

test("a rebuild keeps the volume's content before microversion 2.93, and is refused then with another image", async () => {
  const { before, after, disk, rebuild, isDone } = await rebuilding();
  cinder.fate = (method) => {
    expect(method).not.toBe("reimage");
    return "answered";
  };
  const refused = await rebuild(after, 92);
  expect([refused.status, refused.json.badRequest.message]).toEqual([
    ...[400, `Image ${after} is unacceptable: Unable to rebuild with a different image for a volume-backed server.`],
  ]);
  expect((await rebuild(before, 92)).status).toBe(202);
  await isDone();
  expect(find(disk)?.imageProperties).toEqual({ image_id: before });
});

test("a rebuild is refused for a volume that another server has, too, and for an image that does not fit into the volume", async () => {
  const { after, disk, rebuild } = await rebuilding();
  const big = await rebuild(await upload({ min_disk: 4 }), 93);
  expect([big.status, big.json.badRequest.message]).toEqual([
    ...[400, expect.stringMatching(/^Volume is smaller than the minimum size specified in image metadata\./)],
  ]);
  // Its file is small, and its disk is not.
  const { image } = parts.client;
  const look = vi.spyOn(parts.client, "image").mockImplementation(async function (this: GlanceClient, id, asker) {
    const found = await image.call(this, id, asker);
    return found && { ...found, virtualBytes: 10 * 2 ** 30 };
  });
  const sparse = await rebuild(await upload({ disk_format: "qcow2" }), 93);
  look.mockRestore();
  expect([sparse.status, sparse.json.badRequest.message]).toEqual([
    ...[400, expect.stringMatching(/is unacceptable: It has 10737418240 bytes, and volume/)],
  ]);
  const shown = find(disk)!;
  cinder.putVolume({ ...shown, isMultiattach: true });
  const other = await cinder.reserve({ volumeId: disk, serverUuid: randomUUID(), connector: null }, OWN_NAME);
  if (other.kind !== "reserved") throw new Error(other.kind);
  await cinder.complete(other.attachment.id);
  const shared = await rebuild(after, 93);
  expect([shared.status, shared.json.badRequest.message]).toEqual([400, expect.stringMatching(/another server, too/)]);
  await cinder.deleteAttachment(other.attachment.id);
});

test("a rebuild is refused with an image that the caller has not found, or that Cinder does not find in Berth's name", async () => {
  const { rebuild } = await rebuilding();
  const missing = randomUUID();
  const unknown = await rebuild(missing, 93);
  expect([unknown.status, unknown.json.badRequest.message]).toEqual([
    400,
    `Cannot find image for rebuild. Image ${missing} could not be found.`,
  ]);
  const ofCaller = await upload();
  const { image } = parts.client;
  // The caller has shared the image with its own project alone.
  const look = vi.spyOn(parts.client, "image").mockImplementation(function (this: GlanceClient, id, asker) {
    return asker === null ? Promise.resolve(null) : image.call(this, id, asker);
  });
  const unseen = await rebuild(ofCaller, 93);
  expect([unseen.status, unseen.json.badRequest.message]).toEqual([
    ...[400, expect.stringMatching(/is unacceptable: Cinder reads images in the name of Berth's user/)],
  ]);
  look.mockRestore();
  expect((await rebuild(ofCaller, 93)).status).toBe(202);
});

test("a rebuild is refused while Cinder fills the volume, and when Cinder could not", async () => {
  const { after, disk, rebuild, isDone } = await rebuilding();
  const shown = find(disk)!;
  for (const [status, then] of [
    ["downloading", "Wait until Cinder has filled it"],
    ["error", "volume set --state reserved"],
  ] as const) {
    cinder.putVolume({ ...shown, status });
    const { status: code, json } = await rebuild(after, 93);
    expect([code, json.conflictingRequest.message]).toEqual([
      ...[409, expect.stringMatching(`^Cannot 'rebuild' .* volume ${disk} is ${status} in Cinder\\..*${then}`)],
    ]);
  }
  cinder.putVolume(shown);
  expect((await rebuild(after, 93)).status).toBe(202);
  await isDone();
});

test("a rebuild is overtaken by the server's end, which deletes the volume when Cinder has filled it", async () => {
  cinder.holdsReimages = true;
  const { after, disk, server, rebuild } = await rebuilding();
  // Only what the settler knows to be attached is deleted with the server.
  const isAttached = async () => {
    const text = "select 1 from volumes where server_uuid = $1 and phase = 'attached'";
    return withClient(cloud.databaseUrl, async (client) => (await client.query(text, [server])).rowCount === 1);
  };
  await eventually("the api to know of the volume", isAttached);
  await rebuild(after, 93);
  await isIn(disk, "downloading");
  await cloud.call("DELETE", `/v2.1/servers/${server}`);
  const listed = async () => (await cloud.call("GET", "/v2.1/servers")).json.servers;
  await eventually("the cell to have deleted the server", async () =>
    (await listed()).every((other: { id: string }) => other.id !== server),
  );
  expect(find(disk)?.status).toBe("downloading");
  cinder.fills.finish(true);
  await isIn(disk, undefined);
  await eventually("the server to be gone", async () => (await show(server)) === undefined);
});

test("a volume that several servers may have is attached to no other one while Cinder fills it for a rebuild", async () => {
  const other = await rebuilding();
  const { after, disk, rebuild, isDone } = await rebuilding();
  cinder.putVolume({ ...find(disk)!, isMultiattach: true });
  cinder.holdsReimages = true;
  await rebuild(after, 93);
  await isIn(disk, "downloading");
  const body = { volumeAttachment: { volumeId: disk } };
  const attach = () => cloud.call("POST", `/v2.1/servers/${other.server}/os-volume_attachments`, body, 93);
  const refused = await attach();
  expect([refused.status, refused.json.conflictingRequest.message]).toEqual([
    ...[409, expect.stringMatching(`^Cinder fills volume ${disk}, .*downloading.*try again`)],
  ]);
  expect([find(disk)?.status, cinder.fills.disturbances]).toEqual(["downloading", []]);
  cinder.fills.finish(true);
  await isDone();
  expect((await attach()).status).toBe(200);
  await eventually("the other server to have it", () => find(disk)?.attachedTo.length === 2, PATIENT);
});

test("a server is not set to active while Cinder fills its boot volume, could not fill it, or does not answer", async () => {
  const { disk, server } = await rebuilding();
  const shown = find(disk)!;
  const reset = (state: string) =>
    cloud.call("POST", `/v2.1/servers/${server}/action`, { "os-resetState": { state } }, 93);
  expect((await reset("error")).status).toBe(202);
  for (const status of ["downloading", "error"]) {
    cinder.putVolume({ ...shown, status });
    const { status: code, json } = await reset("active");
    expect([code, json.conflictingRequest.message]).toEqual([
      ...[409, expect.stringMatching(`^Cannot 'os-resetState' .*volume ${disk} is ${status} in Cinder.*reboot .*hard`)],
    ]);
    expect([(await reset("error")).status, (await show(server)).status]).toEqual([202, "ERROR"]);
  }
  cinder.putVolume(shown);
  cinder.fate = () => "silent";
  const silent = await reset("active");
  expect([silent.status, (await show(server)).status]).toEqual([503, "ERROR"]);
  expect(JSON.stringify(silent.json)).toMatch(/Cinder does not answer.*try again later/);
  cinder.fate = () => "answered";
  expect([(await reset("active")).status, (await show(server)).status]).toEqual([202, "ACTIVE"]);
});
