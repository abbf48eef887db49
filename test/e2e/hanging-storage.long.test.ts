import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { eventually } from "../rigs/eventually.ts";
import { guestsOnDisk, hasOpen, type QemuGuestsDir, whyNoQemu } from "../rigs/qemu-guests.ts";
import { type HangingDisk, openHangingDisk, whyNoHangingDisk } from "../rigs/small-disk.ts";
import type { Cloud } from "./cloud.ts";
import { useGuestCloud } from "./guest-cloud.ts";

const PATIENT = { everyMs: 100, withinMs: 90_000 };
/** More than Node has threads for files by default. */
const HANGING = 6;
const skipped = whyNoQemu() ?? whyNoHangingDisk();

describe.skipIf(skipped !== null)(
  `volumes on a storage that hangs${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let dir: QemuGuestsDir;
    let disk: HangingDisk;
    let flavor: string;

    // Hooks after the tests run in the reverse order: the storage answers before the cloud ends, and goes after it.
    beforeAll(() => {
      disk = openHangingDisk();
    });
    afterAll(() => disk?.close());
    const env = () => ({ BERTH_VOLUMES: "simple", BERTH_VOLUME_DIR: disk.path });
    useGuestCloud({ agents: 1, isShared: true, env }, async (made) => {
      ({ cloud, dir } = made);
      flavor = await cloud.compute.flavor();
    });
    afterAll(() => disk?.thaw());

    const call = async (method: "GET" | "POST", path: string, body?: object) => {
      const answer = await cloud.compute.call(method, path, body);
      const text = await answer.text();
      if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
      return text === "" ? {} : JSON.parse(text);
    };
    const booted = async () => {
      const id = await cloud.compute.boot({ flavor, image: NANO_IMAGE_ID });
      expect((await cloud.compute.endedOne(id)).status).toBe("ACTIVE");
      return id;
    };
    async function volumeOf(): Promise<string> {
      const answer = await fetch(`${cloud.apiUrl}/volume/v3/volumes`, {
        ...{ method: "POST", headers: { "content-type": "application/json", "x-auth-token": "admin" } },
        body: JSON.stringify({ volume: { size: 1 } }),
      });
      const text = await answer.text();
      if (answer.status !== 202) throw new Error(`POST /volumes: ${answer.status} ${text}`);
      return (JSON.parse(text) as { readonly volume: { readonly id: string } }).volume.id;
    }
    const ticks = (id: string) => guestsOnDisk(dir.instancesPath, id)[0]?.ticks.length ?? 0;
    async function ticksOn(id: string): Promise<void> {
      const before = ticks(id);
      await eventually(`ticks of ${id}`, () => ticks(id) > before, PATIENT);
    }
    /** Whether the server's guest has the volume's file open. */
    const hasVolume = (id: string, volume: string) =>
      guestsOnDisk(dir.instancesPath, id).some((guest) => hasOpen(guest.dir, join(disk.path, `volume-${volume}.raw`)));
    const isUp = async () => {
      const { services } = await call("GET", "/os-services?binary=nova-compute");
      return services.every(({ state }: { readonly state: string }) => state === "up");
    };

    test("stop neither other guests nor those to which they are being attached, destroy nothing, and are attached when the storage answers again", async () => {
      const other = await booted();
      const ids = await Promise.all(Array.from({ length: HANGING }, booted));
      const volumes = await Promise.all(ids.map(volumeOf));
      disk.freeze();
      for (const [index, id] of ids.entries())
        await call("POST", `/servers/${id}/os-volume_attachments`, { volumeAttachment: { volumeId: volumes[index] } });
      // Another guest's orders need the agent's journal.
      await cloud.compute.changed(other, "os-stop", "SHUTOFF");
      await cloud.compute.changed(other, "os-start", "ACTIVE");
      const fresh = await booted();
      await Promise.all([...ids, other, fresh].map(ticksOn));
      expect(await isUp()).toBe(true);
      // Otherwise nothing has waited for the storage.
      const attached = ids.map((id, index) => () => hasVolume(id, volumes[index] ?? ""));
      expect(attached.map((isAttached) => isAttached())).toEqual(ids.map(() => false));
      disk.thaw();
      for (const [index, isAttached] of attached.entries())
        await eventually(`the volume of ${ids[index]}`, isAttached, PATIENT);
      for (const id of ids) expect((await cloud.compute.show(id))?.status).toBe("ACTIVE");
      for (const [index, id] of ids.entries()) {
        const { volumeAttachments } = await call("GET", `/servers/${id}/os-volume_attachments`);
        expect(volumeAttachments).toMatchObject([{ volumeId: volumes[index] }]);
      }
      await cloud.expectCleanAudit();
    });
  },
);
