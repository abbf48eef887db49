import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { MemoryImageStore } from "../../../../adapters/memory/api/memory-image-store.ts";
import { type BlockStorageFate, MemoryBlockStorage } from "../../../../adapters/memory/memory-block-storage.ts";
import { withSnapshotsDropped } from "../../../../core/stores/api/image-store.ts";
import type { BlockStorage } from "../../../../core/stores/block-storage.ts";
import { OWN_NAME } from "../../../../core/stores/networking.ts";
import type { UserAction, UserChanges } from "../../../../core/tasks/user-changes.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import { eventually } from "../../../../test/rigs/eventually.ts";
import type { KnownCall } from "../../http/call.ts";
import { ImageCatalog } from "../../image/image-catalog.ts";
import { OwnImages } from "../../image/own-images.ts";
import type { FoundRecord } from "../server-volumes/server-volumes.ts";
import type { ActionTarget } from "./action-target.ts";
import { SnapshotSettler } from "./snapshot-settler.ts";
import { VolumeImageSettler } from "./volume-image-settler.ts";
import { acceptVolumeImage, LATE_SNAPSHOT_MS } from "./volume-images.ts";

const SERVER = "5f0a4b5e-7a6c-4f3c-9d1e-2a1b6c8d9e01";
const REQUEST = "req-5f0a4b5e-7a6c-4f3c-9d1e-2a1b6c8d9e02";
const LONG_MS = 2 * 60_000;

let cinder: MemoryBlockStorage;
let clock: ManualClock;
let store: MemoryImageStore;
let images: OwnImages;
let changes: UserChanges | null;
let told: string[];
/** The boot volume and another one. */
let volumeIds: readonly [string, string];
const requests = {
  changeServer: async (_uuid: string, update: (current: never) => UserChanges | null) => {
    changes = update({ changes } as never);
    return null;
  },
};

beforeEach(() => {
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  clock = new ManualClock(1_000_000);
  store = new MemoryImageStore();
  images = new OwnImages({ store, catalog: new ImageCatalog({ store, clock }, { cacheMs: 0 }), clock });
  [changes, told] = [null, []];
  const imageProperties = { min_disk: "3", min_ram: "64" };
  volumeIds = [
    cinder.putVolume({ projectId: "p1", sizeGib: 7, imageProperties }).id,
    cinder.putVolume({ projectId: "p1", sizeGib: 2 }).id,
  ];
});

const call = {
  ...{ requestId: REQUEST, token: "p1", minor: 90 },
  identity: { projectId: "p1", userId: "u1", isAdmin: false },
} as KnownCall;

function accept(storage: BlockStorage = cinder, name = "mine"): Promise<string> {
  const volumes = {
    find: async () =>
      cinder.all().map(({ id, sizeGib, imageProperties }) => ({ id, sizeGib, imageProperties, attachment: null })),
  };
  const spec = {
    flavor: { ephemeralGib: 4, swapMib: 0 },
    volumes: volumeIds.map((volumeId, at) => ({
      ...{ volumeId, device: at === 0 ? "/dev/vda" : "/dev/vdb", isRoot: at === 0, deleteOnTermination: at === 1 },
    })),
  };
  const server = { uuid: SERVER, host: "h-0", spec };
  const described: Parameters<typeof acceptVolumeImage>[2] = {
    ...{ name, owner: "p1", visibility: "private", diskFormat: "raw", containerFormat: "bare", tags: [] },
    ...{ minDiskGib: 0, minRamMib: 0, isProtected: false, properties: { a: "b" }, createdAtMs: 1, updatedAtMs: 1 },
  };
  return acceptVolumeImage(
    { images, volumes: volumes as unknown as { find(): Promise<FoundRecord[]> }, storage, store: requests, clock },
    { server } as unknown as ActionTarget,
    described,
    { call, ownedMax: null, sendsTokens: true },
  );
}

/** What one api does in the background. */
function newSettler() {
  const events = { snapshotsNotSettled: (error: unknown) => told.push(String(error)) };
  const volumeImages = new VolumeImageSettler({ images, storage: cinder, store: requests, events, clock });
  const settler = new SnapshotSettler(
    { images, store: { requests: async () => [] }, cells: new Map(), events: events as never, clock, volumeImages },
    { pollMs: 1_000, settleMs: 60_000 },
  );
  return async () => {
    await settler.settle();
    await volumeImages.idle();
  };
}

/** Lets apis settle for as long as an image could wait. */
async function settled(...rounds: readonly (() => Promise<void>)[]): Promise<void> {
  for (let at = 0; at < 6; at += 1) {
    await Promise.all(rounds.map((round) => round()));
    clock.advance(LONG_MS);
  }
}

const imageNow = async () => (await store.uploads(null, 10))[0] ?? (await store.images(ALL))[0];
const ALL = { visibleTo: null, name: null, marker: null, limit: 10 };
const finishSnapshots = () => {
  for (const { id, status } of cinder.allSnapshots()) if (status === "creating") cinder.finishCreating(id);
};
const action = (): UserAction | undefined => changes?.actions?.[0];
/** Gives each call of one method another fate, and answers all others. */
function fates(method: keyof BlockStorage, ...these: readonly BlockStorageFate[]): void {
  let at = 0;
  cinder.fate = (asked) => (asked === method ? (these[at++] ?? "answered") : "answered");
}

describe("an image of a server that boots from a volume", () => {
  test("names a snapshot of each volume, and is active when Cinder has made all of them", async () => {
    const id = await accept();
    const snapshots = cinder.allSnapshots();
    expect(snapshots).toMatchObject(
      volumeIds.map((volumeId) => ({
        ...{ volumeId, name: "snapshot for mine", projectId: "p1", status: "creating", metadata: { berth_image: id } },
      })),
    );
    const round = newSettler();
    await settled(round);
    expect(await store.image(id)).toMatchObject({ upload: { snapshots: { phase: "made" } } });
    expect(action()).toMatchObject({ action: "createImage", requestId: REQUEST, host: "h-0", ended: null });
    await expect(images.remove(id, { projectId: "p1", isAdmin: false, token: null, requestId: "" })).resolves.toEqual({
      ...{ kind: "conflict", why: expect.stringContaining("delete it when its status is active") },
    });
    finishSnapshots();
    await settled(round);
    const image = await store.image(id);
    expect(image).toMatchObject({
      ...{ minDiskGib: 3, minRamMib: 64, properties: { a: "b", bdm_v2: "True", root_device_name: "/dev/vda" } },
    });
    expect(image?.upload).toBeUndefined();
    expect(JSON.parse(image?.properties.block_device_mapping ?? "")).toMatchObject([
      { source_type: "blank", destination_type: "local", volume_size: 4, boot_index: -1, guest_format: null },
      ...snapshots.map((snapshot, at) => ({
        ...{ source_type: "snapshot", destination_type: "volume", snapshot_id: snapshot.id },
        ...{ device_name: at === 0 ? "/dev/vda" : "/dev/vdb", boot_index: at === 0 ? 0 : -1 },
        ...{ delete_on_termination: at === 1, volume_size: at === 0 ? 7 : 2 },
      })),
    ]);
    expect(action()?.ended).toMatchObject({ error: null });
    expect(cinder.allSnapshots()).toHaveLength(2);
  });

  test("is not made if Cinder refuses one snapshot, and the others are deleted when Cinder has made them", async () => {
    cinder.snapshotsMax = 1;
    await expect(accept()).rejects.toMatchObject({
      ...{ status: 403, message: "Quota exceeded for resources: snapshots" },
    });
    expect(action()?.ended).toMatchObject({ error: "Quota exceeded for resources: snapshots" });
    const round = newSettler();
    await settled(round);
    expect(cinder.allSnapshots()).toMatchObject([{ status: "creating" }]);
    finishSnapshots();
    await settled(round);
    expect([cinder.allSnapshots(), await imageNow(), told]).toEqual([[], undefined, []]);
  });

  test("is not made if Cinder cannot make a snapshot, or somebody deletes one, and the action says what to do", async () => {
    const id = await accept();
    const [first, second] = cinder.allSnapshots();
    cinder.finishCreating(first?.id ?? "");
    cinder.finishCreating(second?.id ?? "", "error");
    await settled(newSettler());
    expect([cinder.allSnapshots(), await store.image(id)]).toEqual([[], null]);
    expect(action()?.ended?.error).toMatch(/status is error\. Look into Cinder's messages/);
    changes = null;
    await accept();
    finishSnapshots();
    await cinder.removeSnapshot(cinder.allSnapshots()[1]?.id ?? "", OWN_NAME);
    await settled(newSettler());
    expect([cinder.allSnapshots(), await imageNow()]).toEqual([[], undefined]);
    expect(action()?.ended?.error).toMatch(/was deleted before the image was made/);
  });

  test("has each snapshot once although Cinder's answer was lost", async () => {
    fates("createSnapshot", "lost", "lost");
    const id = await accept();
    expect(cinder.allSnapshots().map(({ volumeId }) => volumeId)).toEqual(volumeIds);
    finishSnapshots();
    await settled(newSettler());
    expect((await store.image(id))?.upload).toBeUndefined();
  });

  test("is not made while Cinder is silent, and nothing is left of it", async () => {
    fates("createSnapshot", "answered", "silent");
    await expect(accept()).rejects.toMatchObject({ status: 503 });
    cinder.fate = () => "silent";
    finishSnapshots();
    const round = newSettler();
    await settled(round);
    expect([cinder.allSnapshots().length, told.length > 0]).toEqual([1, true]);
    cinder.fate = () => "answered";
    await settled(round);
    expect([cinder.allSnapshots(), await imageNow()]).toEqual([[], undefined]);
  });

  test("leaves no snapshot that a slow Cinder makes after its answer was given up", async () => {
    fates("createSnapshot", "answered", "slow");
    await expect(accept()).rejects.toMatchObject({ status: 503 });
    finishSnapshots();
    const round = newSettler();
    await round();
    expect(cinder.allSnapshots()).toEqual([]);
    expect(await imageNow()).toMatchObject({ upload: { snapshots: { phase: "dropping" } } });
    cinder.finishSlow();
    finishSnapshots();
    await settled(round);
    expect([cinder.allSnapshots(), await imageNow()]).toEqual([[], undefined]);
  });

  test("leaves nothing if the api ends between two snapshots, and an api that comes back afterwards makes none", async () => {
    let goOn = () => {};
    const asleep = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let asked = 0;
    const storage = Object.assign(Object.create(cinder) as BlockStorage, {
      createSnapshot: async (...args: Parameters<BlockStorage["createSnapshot"]>) => {
        const made = await cinder.createSnapshot(...args);
        asked += 1;
        // The process ends, or is stopped, when Cinder has made the first one.
        if (asked === 1) await asleep;
        return made;
      },
      snapshotsOf: (id: string) => cinder.snapshotsOf(id),
      removeSnapshot: (...args: Parameters<BlockStorage["removeSnapshot"]>) => cinder.removeSnapshot(...args),
    });
    const accepted = accept(storage).catch((error: unknown) => error);
    await eventually("Cinder to be asked", () => asked === 1);
    finishSnapshots();
    const round = newSettler();
    await round();
    expect(cinder.allSnapshots()).toHaveLength(1);
    clock.advance(LATE_SNAPSHOT_MS);
    await settled(round);
    expect([cinder.allSnapshots(), await imageNow()]).toEqual([[], undefined]);
    expect(action()?.ended?.error).toMatch(/The api that made the image has ended/);
    goOn();
    expect(await accepted).toMatchObject({ status: 409 });
    expect([cinder.allSnapshots(), asked]).toEqual([[], 1]);
  });

  test("that is dropped leaves only the snapshots that Cinder refuses to delete, and these are named", async () => {
    const id = await accept();
    const [first, second] = cinder.allSnapshots();
    cinder.finishCreating(first?.id ?? "", "error");
    finishSnapshots();
    cinder.removeSnapshot = async (snapshotId, by) =>
      snapshotId === first?.id
        ? { kind: "refused", why: "it is error_deleting" }
        : MemoryBlockStorage.prototype.removeSnapshot.call(cinder, snapshotId, by);
    await settled(newSettler());
    expect(cinder.allSnapshots().map((one) => one.id)).toEqual([first?.id]);
    expect(told.every((one) => one.includes(`snapshot ${first?.id}`) && !one.includes(second?.id ?? ""))).toBe(true);
    expect([told.length > 0, (await store.image(id))?.upload?.snapshots?.phase]).toEqual([true, "dropping"]);
  });

  test("stays until Cinder was asked for its snapshots after the last one could come, also if Cinder answers slowly", async () => {
    fates("createSnapshot", "slow");
    await expect(accept()).rejects.toMatchObject({ status: 503 });
    cinder.snapshotsOf = async (volumeId) => {
      const found = await MemoryBlockStorage.prototype.snapshotsOf.call(cinder, volumeId);
      clock.advance(LATE_SNAPSHOT_MS);
      return found;
    };
    const round = newSettler();
    await round();
    cinder.finishSlow();
    finishSnapshots();
    expect([cinder.allSnapshots().length, (await imageNow()) !== undefined]).toEqual([1, true]);
    await settled(round);
    expect([cinder.allSnapshots(), await imageNow()]).toEqual([[], undefined]);
  });

  test("whose owner deletes it in Glance at the end has not succeeded", async () => {
    const id = await accept();
    finishSnapshots();
    const finish = images.finish.bind(images);
    images.finish = async (image) => {
      const dropped = { why: "It was deleted in Glance.", lateUntilMs: null };
      await store.updateImage(image.id, (one) => withSnapshotsDropped(one, dropped));
      await finish(image);
    };
    await settled(newSettler());
    expect([cinder.allSnapshots(), await store.image(id)]).toEqual([[], null]);
    expect(action()?.ended?.error).toBe("It was deleted in Glance.");
  });

  test("asks of flavors and disks only what is a whole number, since users write it to volumes, and has a name that Cinder takes", async () => {
    const imageProperties = { min_disk: "1.5", min_ram: "1e12" };
    cinder.putVolume({ id: volumeIds[0], projectId: "p1", imageProperties });
    const id = await accept(cinder, "💾".repeat(255));
    expect(await store.image(id)).toMatchObject({ minDiskGib: 0, minRamMib: 0 });
    expect(cinder.allSnapshots()[0]?.name).toBe(`snapshot for ${"💾".repeat(255 - 13)}`);
  });

  test("is made once, or dropped once, by two apis that settle it at the same time", async () => {
    const id = await accept();
    finishSnapshots();
    await settled(newSettler(), newSettler());
    expect((await store.image(id))?.upload).toBeUndefined();
    expect(cinder.allSnapshots()).toHaveLength(2);
    cinder.snapshotsMax = 3;
    await expect(accept()).rejects.toMatchObject({ status: 403 });
    finishSnapshots();
    await settled(newSettler(), newSettler());
    expect(cinder.allSnapshots()).toHaveLength(2);
    expect(told).toEqual([]);
  });
});
