import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CINDER, CinderClient } from "../../adapters/openstack/cinder-client.ts";
import { NeighbourClient } from "../../adapters/openstack/neighbour-client.ts";
import { nanoImage } from "../../adapters/qemu/nano-image.ts";
import { systemClock } from "../../runtime/clock.ts";
import { eventually } from "../rigs/eventually.ts";
import { SERVICE_TOKEN } from "../rigs/fake-neutron.ts";
import { makeQemuGuestsDir, type QemuGuestsDir, qemuDriverIn, whyNoQemu } from "../rigs/qemu-guests.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";
import { hasCinder, type RealCinder, startRealCinder } from "./real-cinder.ts";

const OWN = { callerToken: null, requestId: null };
const SLOWLY = { everyMs: 200, withinMs: 120_000 };

// Needs Debian's packages of Cinder and QEMU: `npm run test:openstack` installs the former.
describe.runIf(hasCinder && whyNoQemu() === null)("virtual machines with volumes of a real Cinder", () => {
  let cinder: RealCinder;
  let client: NeighbourClient;
  let storage: CinderClient;
  let dir: QemuGuestsDir;
  let cloud: TestCloud;
  beforeAll(async () => {
    cinder = await startRealCinder();
    const token = { text: SERVICE_TOKEN, catalogue: [], expiresAtMs: Number.POSITIVE_INFINITY };
    client = new NeighbourClient(
      { session: { token: async () => token, refused: async () => {} }, clock: systemClock },
      { ...CINDER, interface: "internal", region: null, url: cinder.url, timeoutMs: 60_000, triesMax: 1 },
    );
    storage = new CinderClient(client);
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
  }, 240_000);
  afterAll(async () => {
    await cloud?.close();
    await dir?.remove();
    await client?.close();
    await cinder?.stop();
  });

  const statusOf = async (id: string) => (await storage.volume(id, OWN))?.status;
  const isIn = (id: string, status: string | undefined) =>
    eventually(`volume ${id} to be ${status}`, async () => (await statusOf(id)) === status, SLOWLY);
  const show = async (id: string) => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
  async function newVolume(): Promise<string> {
    const made = await cinder.call("one", "POST", "volumes", { volume: { size: 1, name: "disk" } });
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
});
