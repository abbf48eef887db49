import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ImageDirectory } from "../../../adapters/images/image-directory.ts";
import { WantedImages } from "../../../adapters/images/wanted-images.ts";
import { MemoryImageStore } from "../../../adapters/memory/api/memory-image-store.ts";
import { GlanceClient } from "../../../adapters/openstack/glance-client.ts";
import { NeighbourClient } from "../../../adapters/openstack/neighbour-client.ts";
import type { ImageCaller, SnapshotImage } from "../../../core/stores/api/image-service.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { makeOwnedDir } from "../../../runtime/owned-dir.ts";
import {
  type ImageServiceUnderTest,
  imageServiceContract,
  tinyQcow2,
} from "../../../test/contract/image-service.contract.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { type FakeGlance, startFakeGlance } from "../../../test/rigs/fake-glance.ts";
import { GlanceImages } from "./glance-images.ts";

const member = (projectId: string): ImageCaller => ({
  projectId,
  isAdmin: false,
  token: projectId,
  requestId: "req-1",
});
const token = { text: "service-token", catalogue: [], expiresAtMs: Number.POSITIVE_INFINITY };
const session = { token: async () => token, refused: async () => undefined };

interface Rig extends ImageServiceUnderTest {
  readonly images: GlanceImages;
  readonly glance: FakeGlance;
  readonly store: MemoryImageStore;
  readonly dir: string;
  readonly told: string[];
}

async function openRig(clock: Pick<typeof systemClock, "now" | "monotonic"> = systemClock): Promise<Rig> {
  const glance = await startFakeGlance();
  const settings = {
    service: "Glance",
    types: ["image"],
    interface: "internal",
    region: null,
    url: glance.url,
  } as const;
  const neighbour = new NeighbourClient(
    { session, clock: systemClock },
    { ...settings, timeoutMs: 5_000, triesMax: 1 },
  );
  const client = new GlanceClient(neighbour);
  const dir = join(makeOwnedDir("glance-images"), randomUUID());
  mkdirSync(dir);
  const store = new MemoryImageStore();
  const told: string[] = [];
  const images = new GlanceImages(
    {
      ...{
        glance: client,
        store,
        files: new ImageDirectory(dir),
        wanted: new WantedImages(dir, systemClock, randomBytes(32)),
      },
      events: {
        snapshotLost: (_id, reason) => told.push(reason),
        snapshotsNotSettled: (error) => told.push(String(error)),
      },
      clock: { ...systemClock, now: () => clock.now(), monotonic: () => clock.monotonic() },
    },
    { cacheMs: 1_000 },
  );
  return {
    ...{ images, glance, store, dir, told, ann: member("ann"), bob: member("bob"), sortsBySeconds: false },
    upload: async ({ projectId }, { bits, ...fields }) => {
      const image = { visibility: "private", ...fields, id: randomUUID() };
      const headers = { "x-auth-token": projectId };
      await fetch(`${glance.url}/v2/images`, { method: "POST", headers, body: JSON.stringify(image) });
      const file = { ...headers, "content-type": "application/octet-stream" };
      if (bits !== null)
        await fetch(`${glance.url}/v2/images/${image.id}/file`, {
          method: "PUT",
          headers: file,
          body: new Uint8Array(bits),
        });
      return image.id;
    },
    copyDisk: async (id, bits) => writeFileSync(join(dir, `${id}.qcow2`), bits),
    show: async (id) => {
      const answer = await fetch(`${glance.url}/v2/images/${id}`, { headers: { "x-auth-token": "service-token" } });
      return answer.status === 404 ? null : ((await answer.json()) as Record<string, unknown>);
    },
    close: async () => {
      await neighbour.close();
      await images.idle();
      await glance.close();
      rmSync(dir, { recursive: true });
    },
  };
}

imageServiceContract("Glance", () => openRig());

describe("images of Glance", () => {
  const clock = new ManualClock(0);
  let rig: Rig;
  beforeEach(async () => {
    rig = await openRig(clock);
  });
  afterEach(() => rig.close());

  const snapshot = (): SnapshotImage => ({
    ...{ id: randomUUID(), name: "mine", owner: "ann", visibility: "private", diskFormat: "qcow2", tags: [] },
    ...{ containerFormat: "bare", minDiskGib: 2, minRamMib: 32, isProtected: false, createdAtMs: 0, updatedAtMs: 0 },
    properties: {},
    upload: { state: "queued", serverUuid: randomUUID(), rotation: null },
  });
  const begun = async () => {
    const image = snapshot();
    await rig.images.begin(image, null, rig.ann);
    return image;
  };
  const finish = async (image: SnapshotImage) => {
    await rig.images.finish(image);
    await rig.images.idle();
  };
  const isUnfinished = async ({ id }: SnapshotImage) => (await rig.store.image(id)) !== null;
  const raw = { disk_format: "raw", container_format: "bare", bits: Buffer.from("disk") };

  test("are read by other services if the service's own user may see them and they are ready", async () => {
    const image = await begun();
    expect(await rig.images.isReadByOthers(image.id)).toBe(false);
    await rig.copyDisk(image.id, tinyQcow2());
    await finish(image);
    expect([await rig.images.isReadByOthers(image.id), rig.glance.asked.at(-1)]).toEqual([
      ...[true, `GET /v2/images/${image.id} service`],
    ]);
    expect(await rig.images.isReadByOthers(randomUUID())).toBe(false);
    expect(await rig.images.isReadByOthers("no-uuid")).toBe(false);
  });

  test("are looked up and registered in the caller's name, and uploaded in this service's", async () => {
    const id = await rig.upload(rig.ann, raw);
    rig.glance.asked.length = 0;
    await Promise.all([1, 2, 3].map(() => rig.images.find(id, rig.ann)));
    await rig.images.find(id, rig.bob);
    const image = await begun();
    await rig.copyDisk(image.id, tinyQcow2());
    await finish(image);
    const path = `/v2/images/${image.id}`;
    expect(rig.glance.asked).toEqual([
      ...[`GET /v2/images/${id} ann`, `GET /v2/images/${id} bob`, "POST /v2/images ann"],
      ...[`GET ${path} service`, `PUT ${path}/file service`, `GET ${path} service`, `GET ${path} service`],
    ]);
    // The host's file serves the servers of the image.
    expect(readdirSync(rig.dir)).toEqual([expect.stringMatching(new RegExp(`^${image.id}-[0-9a-f]{32}$`))]);
  });

  test("an answer that Glance did not give is not kept", async () => {
    const id = await rig.upload(rig.ann, raw);
    rig.glance.broken = 503;
    await expect(rig.images.find(id, rig.ann)).rejects.toMatchObject({ code: "unreachable" });
    rig.glance.broken = null;
    expect(await rig.images.find(id, rig.ann)).toMatchObject({ id });
  });

  test("while Glance is down, an image that is being made waits, and a later try completes it", async () => {
    const image = await begun();
    await rig.copyDisk(image.id, tinyQcow2());
    rig.glance.broken = 0;
    await finish(image);
    await expect(rig.images.abandon(image.id)).rejects.toMatchObject({ code: "unreachable" });
    expect([await isUnfinished(image), readdirSync(rig.dir)]).toEqual([true, [`${image.id}.qcow2`]]);
    rig.glance.broken = null;
    await finish(image);
    expect([await isUnfinished(image), (await rig.show(image.id))?.status]).toEqual([false, "active"]);
  });

  test("a process that dies after the upload leaves an image that another one completes without uploading it again", async () => {
    const image = await begun();
    await rig.copyDisk(image.id, tinyQcow2());
    const dying = rig.store.deleteImage;
    rig.store.deleteImage = async () => Promise.reject(new Error("dead"));
    await finish(image);
    expect([await isUnfinished(image), rig.told]).toEqual([true, ["Error: dead"]]);
    rig.store.deleteImage = dying;
    rig.glance.asked.length = 0;
    await finish(image);
    expect(await isUnfinished(image)).toBe(false);
    expect(rig.glance.asked.filter((one) => one.startsWith("PUT"))).toEqual([]);
  });

  test("two processes that upload the same image at once make one image", async () => {
    const image = await begun();
    await rig.copyDisk(image.id, tinyQcow2());
    const { promise, resolve } = Promise.withResolvers<void>();
    rig.glance.hold = () => promise;
    await rig.images.finish(image);
    await eventually("the upload", () => rig.glance.asked.some((one) => one.startsWith("PUT")));
    const other = rig.glance.images.get(image.id);
    if (other) other.bits = tinyQcow2();
    resolve();
    await rig.images.idle();
    expect(await isUnfinished(image)).toBe(true);
    await finish(image);
    expect([await isUnfinished(image), (await rig.show(image.id))?.status]).toEqual([false, "active"]);
  });

  test("an image of snapshots that two processes finish at once is made once, and one that Glance has no room for is dropped", async () => {
    const snapshots = { phase: "made", volumeIds: ["v"], snapshotIds: ["s"], lateUntilMs: 0, requestId: "r" } as const;
    const consisting = async () => {
      const image = snapshot();
      const upload = { ...image.upload, snapshots: { ...snapshots, why: null } };
      const whole = { ...image, diskFormat: "raw", upload };
      await rig.images.begin(whole, null, rig.ann);
      return whole;
    };
    const [image, large] = [await consisting(), await consisting()];
    rig.glance.hold = async () => {
      const other = rig.glance.images.get(image.id);
      if (other) other.bits = Buffer.alloc(0);
    };
    await finish(image);
    expect([await isUnfinished(image), rig.told]).toEqual([true, []]);
    await finish(image);
    expect([await isUnfinished(image), (await rig.show(image.id))?.status]).toEqual([false, "active"]);
    rig.glance.hold = async () => {
      throw Object.assign(new Error("full"), { status: 413 });
    };
    await finish(large);
    expect(await rig.store.image(large.id)).toMatchObject({
      upload: { snapshots: { phase: "dropping", why: expect.stringMatching(/answers 413/) } },
    });
  });

  test("the file does not pass as other bytes that the owner uploads while the image is made", async () => {
    const image = await begun();
    await rig.copyDisk(image.id, tinyQcow2());
    const registered = rig.glance.images.get(image.id);
    if (registered) registered.bits = Buffer.from("other");
    await finish(image);
    expect([await isUnfinished(image), readdirSync(rig.dir)]).toEqual([false, [`${image.id}.qcow2`]]);
  });

  test("an image that its owner deletes while it is made is forgotten, with its file", async () => {
    const image = await begun();
    await rig.copyDisk(image.id, tinyQcow2());
    rig.glance.images.delete(image.id);
    await finish(image);
    expect([await isUnfinished(image), readdirSync(rig.dir), rig.told]).toEqual([false, [], []]);
  });

  test("an image whose file does not appear, or that Glance has no room for, is removed with a word to the operator", async () => {
    const missing = await begun();
    // The copying took long.
    clock.advance(1_000_000);
    await finish(missing);
    clock.advance(299_999);
    await finish(missing);
    expect(await isUnfinished(missing)).toBe(true);
    clock.advance(300_001);
    await finish(missing);
    const large = await begun();
    await rig.copyDisk(large.id, tinyQcow2());
    rig.glance.hold = async () => {
      rig.glance.hold = async () => {};
      throw Object.assign(new Error("full"), { status: 413 });
    };
    await finish(large);
    expect([await isUnfinished(missing), await isUnfinished(large)]).toEqual([false, false]);
    expect([await rig.show(missing.id), await rig.show(large.id)]).toEqual([null, null]);
    expect(rig.told).toEqual([expect.stringMatching(/has no file/), expect.stringMatching(/answers 413/)]);
  });

  test("the file of a shelved server stays until nothing needs it, whatever becomes of its image in Glance", async () => {
    const shelved = async () => {
      const image = { ...snapshot(), shelvedServer: randomUUID() };
      await rig.images.begin(image, null, rig.ann);
      await rig.copyDisk(image.id, tinyQcow2());
      return image;
    };
    const [uploaded, deleted, refused] = [await shelved(), await shelved(), await shelved()];
    await finish(uploaded);
    rig.glance.images.delete(deleted.id);
    await finish(deleted);
    rig.glance.hold = async () => {
      throw Object.assign(new Error("full"), { status: 413 });
    };
    await finish(refused);
    const all = [uploaded, deleted, refused].map(({ id }) => id);
    expect(
      readdirSync(rig.dir)
        .map((name) => name.slice(0, 36))
        .sort(),
    ).toEqual(all.toSorted());
    expect(await rig.images.unfinished(null, 10)).toEqual([]);
    rig.store.endedShelved = async () => all;
    const remove = rig.store.deleteImage.bind(rig.store);
    rig.glance.broken = 503;
    await expect(rig.images.endShelved()).rejects.toThrow("3 images of shelved servers could not be removed");
    expect(await rig.store.image(uploaded.id)).not.toBeNull();
    rig.glance.broken = null;
    // One that cannot be removed keeps no others, and is removed by a later call.
    rig.store.deleteImage = async (id) => (id === all[0] ? Promise.reject(new Error("down")) : remove(id));
    await expect(rig.images.endShelved()).rejects.toMatchObject({
      errors: [expect.objectContaining({ message: "down" })],
    });
    expect(await Promise.all(all.map(async (id) => (await rig.store.image(id)) === null))).toEqual([false, true, true]);
    rig.store.deleteImage = remove;
    await rig.images.endShelved();
    expect(await rig.store.image(uploaded.id)).toBeNull();
    // One that its owner has protected in Glance stays there.
    const kept = await shelved();
    const stored = rig.glance.images.get(kept.id);
    if (stored) rig.glance.images.set(kept.id, { ...stored, fields: { ...stored.fields, protected: true } });
    rig.store.endedShelved = async () => [kept.id];
    await rig.images.endShelved();
    expect([rig.glance.images.size, readdirSync(rig.dir)]).toEqual([1, [`${kept.id}.qcow2`]]);
    if (stored) rig.glance.images.set(kept.id, stored);
    await rig.images.endShelved();
    expect([readdirSync(rig.dir), rig.glance.images.size]).toEqual([[], 0]);
  });

  test("the image of a server that was unshelved goes in Glance, and its file stays until the server ends", async () => {
    const shelved = async () => {
      const image = { ...snapshot(), shelvedServer: randomUUID() };
      await rig.images.begin(image, null, rig.ann);
      await rig.copyDisk(image.id, tinyQcow2());
      await finish(image);
      return image;
    };
    const [unshelved, failed, other] = [await shelved(), await shelved(), await begun()];
    for (const { id } of [unshelved, failed, other, snapshot()]) await rig.images.noteUnshelving(id);
    const asked = async () => (await rig.images.unshelving(null, 10)).map(({ id }) => id);
    expect(new Set(await asked())).toEqual(new Set([unshelved.id, failed.id]));
    rig.glance.broken = 503;
    await expect(rig.images.hideUnshelved(unshelved.id)).rejects.toMatchObject({ code: "unreachable" });
    rig.glance.broken = null;
    expect(await asked()).toContain(unshelved.id);
    for (let times = 0; times < 2; times += 1) await rig.images.hideUnshelved(unshelved.id);
    await rig.images.keepShelved(failed.id);
    expect(await asked()).toEqual([]);
    expect([await rig.show(unshelved.id), (await rig.show(failed.id))?.["status"]]).toEqual([null, "active"]);
    expect(readdirSync(rig.dir)).toContain(`${unshelved.id}.qcow2`);
    expect(await rig.store.image(unshelved.id)).toMatchObject({ shelvedServer: unshelved.shelvedServer });
    rig.store.endedShelved = async () => [unshelved.id];
    await rig.images.endShelved();
    expect(readdirSync(rig.dir)).toEqual([`${failed.id}.qcow2`]);
  });

  test("the image of an unshelved server stays in Glance if its owner has protected it", async () => {
    const image = { ...snapshot(), shelvedServer: randomUUID() };
    await rig.images.begin(image, null, rig.ann);
    await rig.copyDisk(image.id, tinyQcow2());
    await finish(image);
    const stored = rig.glance.images.get(image.id);
    if (stored) rig.glance.images.set(image.id, { ...stored, fields: { ...stored.fields, protected: true } });
    await rig.images.noteUnshelving(image.id);
    await rig.images.hideUnshelved(image.id);
    expect([rig.glance.images.has(image.id), await rig.images.unshelving(null, 10)]).toEqual([true, []]);
  });

  test("an image that cannot be made is left to its owner, who has protected it in Glance", async () => {
    const protect = async () => {
      const image = await begun();
      const stored = rig.glance.images.get(image.id);
      if (stored) rig.glance.images.set(image.id, { ...stored, fields: { ...stored.fields, protected: true } });
      return image;
    };
    const [abandoned, lost] = [await protect(), await protect()];
    await rig.images.abandon(abandoned.id);
    await rig.copyDisk(lost.id, tinyQcow2());
    rig.glance.hold = async () => {
      throw Object.assign(new Error("full"), { status: 413 });
    };
    await finish(lost);
    expect(await rig.images.unfinished(null, 10)).toEqual([]);
    expect([rig.glance.images.has(abandoned.id), rig.glance.images.has(lost.id)]).toEqual([true, true]);
  });

  test("an image that Glance refuses to register is not made", async () => {
    const image = snapshot();
    const foreign = { ...image, id: randomUUID(), owner: "bob" };
    await expect(rig.images.begin(foreign, null, rig.ann)).rejects.toMatchObject({ code: "refused" });
    expect(await isUnfinished(foreign)).toBe(false);
    rig.glance.broken = 0;
    await expect(rig.images.begin(image, null, rig.ann)).rejects.toMatchObject({ code: "unreachable" });
    // Glance may have it, so it is removed later.
    expect(await isUnfinished(image)).toBe(true);
  });
});
