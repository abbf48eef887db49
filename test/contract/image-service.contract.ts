import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ImageCaller, ImageFilters, ImageService, SnapshotImage } from "../../core/stores/api/image-service.ts";
import type { ImageSnapshots } from "../../core/stores/api/image-store.ts";
import { eventually } from "../rigs/eventually.ts";

/** A service of images with the calls that only its users make. */
export interface ImageServiceUnderTest {
  readonly images: ImageService;
  /** A member of a project of its own, and another one. */
  readonly ann: ImageCaller;
  readonly bob: ImageCaller;
  /** Stores an image with these bits and returns its id. */
  upload(
    owner: ImageCaller,
    image: Readonly<Record<string, unknown>> & { readonly bits: Buffer | null },
  ): Promise<string>;
  /** Puts the file that a host has made of a server's disk where hosts put them. */
  copyDisk(id: string, bits: Buffer): Promise<void>;
  /** What the service itself shows of an image, to its administrators; null if there is none. */
  show(id: string): Promise<Readonly<Record<string, unknown>> | null>;
  /** Whether images that were made in the same second have no order. */
  readonly sortsBySeconds: boolean;
  close(): Promise<void>;
}

/** The smallest beginning of a qcow2 image with a disk of 1 MiB. */
export function tinyQcow2(): Buffer {
  const header = Buffer.alloc(512);
  header.write("514649fb", "hex");
  header.writeUInt32BE(3, 4);
  header.writeUInt32BE(16, 20);
  header.writeBigUInt64BE(1n << 20n, 24);
  header.writeUInt32BE(104, 100);
  return header;
}

const SERVER = "5f0a4b5e-7a6c-4f3c-9d1e-2a1b6c8d9e01";

/** The guarantees of all services of images. */
export function imageServiceContract(name: string, open: () => Promise<ImageServiceUnderTest>): void {
  describe(`images of ${name}`, () => {
    let one: ImageServiceUnderTest;
    let images: ImageService;
    beforeEach(async () => {
      one = await open();
      images = one.images;
    });
    afterEach(() => one.close());

    const bits = Buffer.alloc(2_000, "disk");
    const raw = { disk_format: "raw", container_format: "bare", bits };

    /** The image of a server's disk, as an action registers it. */
    const snapshot = (owner: ImageCaller, fields: Partial<SnapshotImage> = {}): SnapshotImage => ({
      ...{ id: randomUUID(), name: "mine", owner: owner.projectId, visibility: "private", diskFormat: "qcow2" },
      ...{ containerFormat: "bare", minDiskGib: 2, minRamMib: 32, isProtected: false, tags: [] },
      properties: { image_type: "snapshot", instance_uuid: SERVER, hw_disk_bus: "virtio" },
      ...{ createdAtMs: Date.now(), updatedAtMs: Date.now() },
      upload: { state: "queued", serverUuid: SERVER, rotation: null },
      ...fields,
    });
    const begin = async (owner: ImageCaller, fields: Partial<SnapshotImage> = {}) => {
      const image = snapshot(owner, fields);
      expect(await images.begin(image, null, owner)).toBe("created");
      return image;
    };
    const unfinished = async (id: string) => (await images.unfinished(null, 100)).find((image) => image.id === id);
    const ended = (id: string) =>
      eventually("the image to be ended", async () => {
        const image = await unfinished(id);
        if (image === undefined) return true;
        await images.finish(image);
        return false;
      });
    const finish = async (image: SnapshotImage) => {
      await one.copyDisk(image.id, tinyQcow2());
      await ended(image.id);
    };

    test("an image is found with everything that scheduling and hosts need of it", async () => {
      const id = await one.upload(one.ann, {
        ...{ ...raw, name: "base", min_disk: 3, min_ram: 64, visibility: "private" },
        ...{ hw_disk_bus: "virtio", "trait:CUSTOM_X": "required" },
      });
      const found = await images.find(id, one.ann);
      expect(found).toMatchObject({
        ...{ id, name: "base", status: "active", diskFormat: "raw", containerFormat: "bare", minDiskGib: 3 },
        ...{ minRamMib: 64, bytes: 2_000, sha512: expect.stringMatching(/^[0-9a-f]{128}$/) },
        properties: { hw_disk_bus: "virtio", "trait:CUSTOM_X": "required" },
      });
      expect(Object.keys((found as { properties: object }).properties).sort()).toEqual([
        "hw_disk_bus",
        "trait:CUSTOM_X",
      ]);
      expect(await images.find(id.toUpperCase(), one.ann)).toEqual(found);
      expect(typeof found === "object" && found && found.createdAtMs > 1_700_000_000_000).toBe(true);
    });

    test("an image that another project keeps for itself, that has gone, or whose id is none, is not found", async () => {
      const id = await one.upload(one.ann, { ...raw, visibility: "private" });
      for (const asked of [id, randomUUID(), "no uuid", "../x"])
        expect([null, "deleted"]).toContain(await images.find(asked, one.bob));
      const queued = await one.upload(one.ann, { ...raw, bits: null });
      expect(await images.find(queued, one.ann)).toMatchObject({ status: "queued", bytes: null, sha512: null });
    });

    test("images are listed to those who may see them, newest first, in pages", async () => {
      const ids: string[] = [];
      for (const name of ["same", "same", "other"])
        ids.push(await one.upload(one.ann, { ...raw, name, visibility: "private" }));
      const ofList = async (query: object, caller = one.ann) => {
        const listed = await images.list({ name: null, marker: null, limit: 100, ...query }, caller);
        return listed === "no-marker" ? listed : listed.map(({ id }) => id).filter((id) => ids.includes(id));
      };
      expect(await ofList({})).toHaveLength(3);
      expect(((await ofList({ name: "same" })) as string[]).sort()).toEqual(ids.slice(0, 2).sort());
      expect(await ofList({}, one.bob)).toEqual([]);
      const all = (await ofList({})) as string[];
      expect(await ofList({ marker: all[0] })).toEqual(all.slice(1));
      expect(await ofList({ marker: randomUUID() })).toBe("no-marker");
      // Anybody can make a community image, which others find by its id alone.
      const open = await one.upload(one.ann, { ...raw, name: "same", visibility: "community" });
      ids.push(open);
      expect(await ofList({ name: "same" }, one.bob)).toEqual([]);
      expect(await ofList({})).toContain(open);
      expect(await images.find(open, one.bob)).toMatchObject({ id: open, status: "active" });
    });

    test("images are listed by their status, sizes, time and properties", async () => {
      const small = await one.upload(one.ann, { ...raw, visibility: "private", image_type: "snapshot" });
      const large = await one.upload(one.ann, { ...raw, visibility: "private", min_disk: 3, min_ram: 64 });
      const queued = await one.upload(one.ann, { ...raw, bits: null, visibility: "private" });
      const ofList = async (filters: ImageFilters) => {
        const listed = await images.list({ name: null, marker: null, limit: 100, filters }, one.ann);
        if (listed === "no-marker") throw new Error(listed);
        return listed.map(({ id }) => id).filter((id) => [small, large, queued].includes(id));
      };
      expect(await ofList({ status: "queued" })).toEqual([queued]);
      expect((await ofList({ status: "active" })).toSorted()).toEqual([small, large].toSorted());
      expect(await ofList({ minDiskGib: 3 })).toEqual([large]);
      expect(await ofList({ minRamMib: 64, status: "active" })).toEqual([large]);
      expect(await ofList({ properties: { image_type: "snapshot" } })).toEqual([small]);
      expect(await ofList({ changedSinceMs: Date.now() - 60_000 })).toHaveLength(3);
      expect(await ofList({ changedSinceMs: Date.now() + 60_000 })).toEqual([]);
    });

    test("the owner changes an image's properties, and deletes it; others do neither", async () => {
      const id = await one.upload(one.ann, { ...raw, visibility: "private", kept: "1", changed: "2", removed: "3" });
      const change = (caller = one.ann) =>
        images.changeProperties(
          id,
          ({ removed: _, ...known }) => ({ ...known, changed: "x", "with/slash~": "y" }),
          caller,
        );
      const after = { kept: "1", changed: "x", "with/slash~": "y" };
      expect((await change(one.bob)).kind).toBe("gone");
      expect(await change()).toEqual({ kind: "changed", properties: after });
      expect(await images.find(id, one.ann)).toMatchObject({ properties: after });
      expect(await change()).toEqual({ kind: "changed", properties: after });
      expect((await images.remove(id, one.bob)).kind).toBe("gone");
      expect(await images.remove(id, one.ann)).toEqual({ kind: "removed" });
      expect([null, "deleted"]).toContain(await images.find(id, one.ann));
      expect((await images.remove(id, one.ann)).kind).toBe("gone");
      expect((await images.remove("no uuid", one.ann)).kind).toBe("gone");
      const shared = await one.upload(one.ann, { ...raw, visibility: "community" });
      expect((await images.remove(shared, one.bob)).kind).toBe("forbidden");
      const isProtected = await one.upload(one.ann, { ...raw, visibility: "private", protected: true });
      expect((await images.remove(isProtected, one.ann)).kind).toBe("forbidden");
    });

    test("a server's disk becomes an image of its owner with the given properties, once", async () => {
      const image = await begin(one.ann);
      expect(await images.begin(image, null, one.ann)).toBe("id-taken");
      expect(await unfinished(image.id)).toMatchObject({ upload: { state: "queued", serverUuid: SERVER } });
      expect(await images.find(image.id, one.ann)).toMatchObject({ status: "queued", minDiskGib: 2 });
      await images.markSaving(image.id);
      expect(await unfinished(image.id)).toMatchObject({ upload: { state: "saving" } });
      await finish(image);
      await images.finish(image);
      expect(await unfinished(image.id)).toBeUndefined();
      expect(await images.find(image.id, one.ann)).toMatchObject({
        ...{ id: image.id, name: "mine", status: "active", diskFormat: "qcow2", minDiskGib: 2, minRamMib: 32 },
        properties: { image_type: "snapshot", instance_uuid: SERVER, hw_disk_bus: "virtio" },
      });
      expect([null, "deleted"]).toContain(await images.find(image.id, one.bob));
    });

    test("an image of snapshots gets its properties and no bits, and is not deleted without its snapshots meanwhile", async () => {
      const snapshots: ImageSnapshots = {
        ...{ phase: "making", volumeIds: ["v"], snapshotIds: [], lateUntilMs: 1, requestId: "req-1", why: null },
      };
      const upload = { state: "queued", serverUuid: SERVER, rotation: null, snapshots } as const;
      const given = { diskFormat: "raw", properties: { hw_disk_bus: "virtio" }, upload };
      const { id } = await begin(one.ann, given);
      const made = await images.changeUnfinished(id, (image) => ({
        ...{ ...image, properties: { ...image.properties, bdm_v2: "True" } },
        upload: { ...image.upload, snapshots: { ...snapshots, phase: "made", snapshotIds: ["s"] } },
      }));
      expect(await unfinished(id)).toMatchObject({ upload: { snapshots: { phase: "made", snapshotIds: ["s"] } } });
      if (made === null) throw new Error("the image has gone");
      await images.finish(made);
      await ended(id);
      expect(await images.find(id, one.ann)).toMatchObject({
        ...{ status: "active", minDiskGib: 2, properties: { hw_disk_bus: "virtio", bdm_v2: "True" } },
      });
      expect(await images.changeUnfinished(id, (image) => image)).toBeNull();
      const other = await begin(one.ann, given);
      const removed = await images.remove(other.id, one.ann);
      if (removed.kind === "conflict") expect(await unfinished(other.id)).toBeDefined();
      else {
        // Glance lets its owner delete it, and the row says then what is to become of its snapshots.
        await images.finish(other);
        await eventually("the row to say so", async () => {
          return (await unfinished(other.id))?.upload.snapshots?.phase === "dropping";
        });
      }
    });

    test("an image whose copying failed is removed, also twice", async () => {
      const image = await begin(one.ann);
      await images.abandon(image.id);
      await images.abandon(image.id);
      expect([null, "deleted"]).toContain(await images.find(image.id, one.ann));
      expect(await unfinished(image.id)).toBeUndefined();
    });

    test("keeps as many backups of one type of a server as its rotation says", async () => {
      const properties = { image_type: "backup", instance_uuid: randomUUID(), backup_type: "daily" };
      const backup = (index: number, fields: object = {}) =>
        begin(one.ann, {
          createdAtMs: 1_700_000_000_000 + index,
          properties: { ...properties, ...fields },
          upload: { state: "queued", serverUuid: SERVER, rotation: 2 },
        });
      const weekly = await backup(0, { backup_type: "weekly" });
      await finish(weekly);
      const made: SnapshotImage[] = [];
      for (const index of [1, 2, 3]) {
        made.push(await backup(index));
        await finish(made.at(-1)!);
        if (one.sortsBySeconds) await nextSecond();
      }
      const shown = await Promise.all([weekly, ...made].map(({ id }) => one.show(id)));
      expect(shown.map((image) => image?.status ?? null)).toEqual(["active", null, "active", "active"]);
    });
  });
}

function nextSecond(): Promise<true> {
  const second = Math.floor(Date.now() / 1_000);
  return eventually("the next second", () => Math.floor(Date.now() / 1_000) > second);
}
