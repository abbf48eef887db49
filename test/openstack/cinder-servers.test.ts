import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CinderClient } from "../../adapters/openstack/cinder-client.ts";
import { nanoImage } from "../../adapters/qemu/nano-image.ts";
import { eventually } from "../rigs/eventually.ts";
import { makeQemuGuestsDir, type QemuGuestsDir, qemuDriverIn, whyNoQemu } from "../rigs/qemu-guests.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";
import { type OpenedCinder, openCinder } from "./open-cinder.ts";
import { COPIES_SNAPSHOTS, hasCinder, type RealCinder } from "./real-cinder.ts";

const OWN = { callerToken: null, requestId: null };
const SLOWLY = { everyMs: 200, withinMs: 120_000 };

// Needs Debian's packages of Cinder and QEMU: `npm run test:openstack` installs the former.
describe.runIf(hasCinder && whyNoQemu() === null)("virtual machines with volumes of a real Cinder", () => {
  let cinder: RealCinder;
  let opened: OpenedCinder;
  let storage: CinderClient;
  let dir: QemuGuestsDir;
  let cloud: TestCloud;
  beforeAll(async () => {
    opened = await openCinder(COPIES_SNAPSHOTS);
    ({ cinder, storage } = opened);
    dir = makeQemuGuestsDir();
    const inventories = { VCPU: { total: 4 }, MEMORY_MB: { total: 1_024 }, DISK_GB: { total: 10 } };
    const hosts = [{ name: "h-0", inventories, hypervisor: { type: "QEMU" } }];
    cloud = await startTestCloud({
      ...{ cells: [{ name: "c-1", hosts }], schedulers: 1, conductors: 1, volumes: "cinder", blockStorage: storage },
      openDriver: () => {
        const driver = qemuDriverIn(dir, { volumeMounts: cinder.mounts });
        return { driver, guests: () => driver.guests(new Set(["h-0"])), close: () => driver.close() };
      },
    });
    await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
  }, 900_000);
  afterAll(async () => {
    await cloud?.close();
    await dir?.remove();
    await opened?.close();
  });

  const statusOf = async (id: string) => (await storage.volume(id, OWN))?.status;
  const isIn = (id: string, status: string | undefined) =>
    eventually(`volume ${id} to be ${status}`, async () => (await statusOf(id)) === status, SLOWLY);
  const show = async (id: string) => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
  async function newVolume(name = "disk"): Promise<string> {
    const made = await cinder.call("one", "POST", "volumes", { volume: { size: 1, name } });
    const id = made.volume?.id ?? "";
    await isIn(id, "available");
    return id;
  }
  /** Writes the nano guest into a volume, as an operator fills one on the storage. */
  async function bootable(): Promise<string> {
    const id = await newVolume();
    await cinder.call("one", "POST", `volumes/${id}/action`, { "os-set_bootable": { bootable: true } });
    const directory = createHash("md5").update("storage:/volumes").digest("hex");
    const file = await open(join(cinder.mounts, directory, `volume-${id}`), "r+");
    await file.write(nanoImage());
    await file.close();
    return id;
  }

  test("a server boots from a volume, gets and loses another one while it runs, and gives both back", {
    timeout: 240_000,
  }, async () => {
    const [root, data] = [await bootable(), await newVolume()];
    const mapping = { source_type: "volume", destination_type: "volume", uuid: root, boot_index: 0 };
    const { json } = await cloud.call("POST", "/v2.1/servers", {
      server: { name: "s", flavorRef: "s", imageRef: "", networks: "none", block_device_mapping_v2: [mapping] },
    });
    const { id } = json.server;
    await eventually("the server to run", async () => (await show(id)).status === "ACTIVE", SLOWLY);
    expect((await storage.volume(root, OWN))?.attachedTo).toMatchObject([{ serverUuid: id, host: "h-0" }]);
    const console = async () =>
      (await cloud.call("POST", `/v2.1/servers/${id}/action`, { "os-getConsoleOutput": {} })).json.output ?? "";
    await eventually("the guest to boot from the volume", async () => /T/.test(await console()), SLOWLY);
    const url = `/v2.1/servers/${id}/os-volume_attachments`;
    expect((await cloud.call("POST", url, { volumeAttachment: { volumeId: data } })).status).toBe(200);
    await isIn(data, "in-use");
    const detach = async () => (await cloud.call("DELETE", `${url}/${data}`)).status === 202;
    await eventually("the detachment to be taken", detach, SLOWLY);
    await isIn(data, "available");
    await cloud.call("DELETE", `/v2.1/servers/${id}`);
    await isIn(root, "available");
    for (const volumeId of [root, data]) expect(await storage.attachments({ volumeId })).toEqual([]);
  });

  test("blank volumes are made with a server, given to its guest, and end with it or stay as its owner wished", {
    timeout: 240_000,
  }, async () => {
    const root = await bootable();
    const blank = { source_type: "blank", destination_type: "volume", boot_index: -1, volume_size: 1 };
    const mappings = [
      { source_type: "volume", destination_type: "volume", uuid: root, boot_index: 0 },
      { ...blank, delete_on_termination: true },
      blank,
    ];
    const { json } = await cloud.call("POST", "/v2.1/servers", {
      server: { name: "s", flavorRef: "s", imageRef: "", networks: "none", block_device_mapping_v2: mappings },
    });
    const { id } = json.server;
    await eventually("the server to run", async () => (await show(id)).status === "ACTIVE", SLOWLY);
    const names = [1, 2].map((at) => `${id}-blank-vol-${at}`);
    const [ending, staying] = (await Promise.all(names.map((name) => storage.volumesNamed(name)))).flat();
    for (const volume of [ending, staying])
      expect(volume).toMatchObject({ status: "in-use", attachedTo: [{ serverUuid: id, host: "h-0" }] });
    const url = `/v2.1/servers/${id}/os-volume_attachments`;
    await eventually(
      "the api to know them",
      async () => (await cloud.call("GET", url)).json.volumeAttachments.length === 3,
      SLOWLY,
    );
    await cloud.call("DELETE", `/v2.1/servers/${id}`);
    await isIn(ending?.id ?? "", undefined);
    await isIn(staying?.id ?? "", "available");
    await isIn(root, "available");
  });

  test("a volume that Cinder cannot make fails the build of its server, and is deleted", {
    timeout: 240_000,
  }, async () => {
    const blank = { source_type: "blank", destination_type: "volume", boot_index: -1, volume_size: 5_000_000 };
    const mapping = { source_type: "volume", destination_type: "volume", uuid: await bootable(), boot_index: 0 };
    await cinder.call("service-token", "PUT", "os-quota-sets/service", { quota_set: { gigabytes: -1 } });
    const { status, json } = await cloud.call("POST", "/v2.1/servers", {
      server: { name: "s", flavorRef: "s", imageRef: "", networks: "none", block_device_mapping_v2: [mapping, blank] },
    });
    expect([status, json]).toEqual([202, expect.anything()]);
    const { id } = json.server;
    await eventually("the build to fail", async () => (await show(id)).status === "ERROR", SLOWLY);
    expect((await show(id)).fault.message).toContain("its status in Cinder is error");
    const gone = async () => (await storage.volumesNamed(`${id}-blank-vol-1`)).length === 0;
    await eventually("the volume to be deleted", gone, SLOWLY);
    await isIn(mapping.uuid, "available");
  });

  /** A server that boots from a volume and has another one. */
  async function bootWith(data: string): Promise<string> {
    const mapping = { source_type: "volume", destination_type: "volume", uuid: await bootable(), boot_index: 0 };
    const mappings = [mapping, { ...mapping, uuid: data, boot_index: -1 }];
    const { json } = await cloud.call("POST", "/v2.1/servers", {
      server: { name: "s", flavorRef: "s", imageRef: "", networks: "none", block_device_mapping_v2: mappings },
    });
    await runs(json.server.id);
    return json.server.id;
  }
  const runs = (id: string) =>
    eventually("the server to run", async () => (await show(id)).status === "ACTIVE", SLOWLY);
  const act = (id: string, body: object) => cloud.call("POST", `/v2.1/servers/${id}/action`, body);
  const imageOf = async (id: string) => (await cloud.call("GET", `/image/v2/images/${id}`)).json;

  test("an image of a running server consists of snapshots, and another server boots from new volumes of them", {
    timeout: 240_000,
  }, async () => {
    const data = await newVolume();
    const id = await bootWith(data);
    const { status, json } = await act(id, { createImage: { name: "mine" } });
    expect([status, json]).toEqual([202, { image_id: expect.any(String) }]);
    const { image_id } = json;
    await eventually("the image to be active", async () => (await imageOf(image_id)).status === "active", SLOWLY);
    expect((await show(id)).status).toBe("ACTIVE");
    expect(await storage.snapshotsOf(data)).toMatchObject([
      { status: "available", name: "snapshot for mine", metadata: { berth_image: image_id } },
    ]);
    const server = { name: "t", flavorRef: "s", imageRef: image_id, networks: "none" };
    const made = await cloud.call("POST", "/v2.1/servers", { server });
    expect([made.status, made.json]).toEqual([202, expect.anything()]);
    const other = made.json.server.id;
    await runs(other);
    const console = async () => (await act(other, { "os-getConsoleOutput": {} })).json.output ?? "";
    await eventually("the guest to boot from the new volume", async () => /T/.test(await console()), SLOWLY);
    const names = [0, 1].map((at) => `${other}-snapshot-vol-${at}`);
    const volumes = (await Promise.all(names.map((name) => storage.volumesNamed(name)))).flat();
    expect(volumes).toMatchObject([
      { status: "in-use", isBootable: true, attachedTo: [{ serverUuid: other }] },
      { status: "in-use", attachedTo: [{ serverUuid: other }] },
    ]);
    for (const one of [id, other]) await cloud.call("DELETE", `/v2.1/servers/${one}`);
    for (const volume of [data, ...volumes.map((one) => one.id)]) await isIn(volume, "available");
  });

  test("an image of which Cinder cannot make one snapshot goes with the others, and the action says why", {
    timeout: 240_000,
  }, async () => {
    const data = await newVolume("no snapshots");
    const id = await bootWith(data);
    const { image_id } = (await act(id, { createImage: { name: "broken" } })).json;
    const isGone = async () => (await imageOf(image_id)).status === undefined;
    await eventually("the image to be gone", isGone, SLOWLY);
    expect(await storage.snapshotsOf(data)).toEqual([]);
    const url = `/v2.1/servers/${id}/os-instance-actions`;
    const [{ request_id }] = (await cloud.call("GET", url)).json.instanceActions;
    const { instanceAction } = (await cloud.call("GET", `${url}/${request_id}`)).json;
    expect(instanceAction).toMatchObject({
      ...{ action: "createImage", message: "Error" },
      events: [{ event: "api_snapshot_instance", result: "Error" }],
    });
    expect(instanceAction.events[0].details).toMatch(/its status is error/);
    await cloud.call("DELETE", `/v2.1/servers/${id}`);
    await isIn(data, "available");
  });
});
