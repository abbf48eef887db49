import { expect, test } from "vitest";
import { MemoryImageStore } from "../../../../adapters/memory/api/memory-image-store.ts";
import type { ImageRecord } from "../../../../core/stores/api/image-store.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import { ImageCatalog } from "../../image/image-catalog.ts";
import { OwnImages } from "../../image/own-images.ts";
import { SnapshotSettler } from "./snapshot-settler.ts";

const SERVER = "5f0a4b5e-7a6c-4f3c-9d1e-2a1b6c8d9e01";

function backup(index: number, change: Partial<ImageRecord> = {}): ImageRecord {
  return {
    id: `00000000-0000-4000-8000-00000000000${index}`,
    ...{ name: `backup ${index}`, owner: "p1", visibility: "private", diskFormat: "qcow2", containerFormat: "bare" },
    ...{ minDiskGib: 0, minRamMib: 0, isProtected: false, tags: [], createdAtMs: index, updatedAtMs: index },
    properties: { image_type: "backup", instance_uuid: SERVER, backup_type: "daily" },
    ...change,
  };
}

function settlerOf(
  store: MemoryImageStore,
  tasks: readonly object[],
  change: Partial<Pick<OwnImages, "abandon">> = {},
): SnapshotSettler {
  const cell = { operations: async () => ({ kind: "answer", value: tasks }) };
  const record = { serverUuid: SERVER, cell: "c1" };
  const clock = new ManualClock(0);
  const images = new OwnImages({ store, catalog: new ImageCatalog({ store, clock }, { cacheMs: 0 }), clock });
  return new SnapshotSettler(
    {
      ...{ images: Object.assign(images, change), clock },
      store: { requests: async () => [record] as never },
      cells: new Map([["c1", cell]]) as never,
      events: {} as never,
    },
    { pollMs: 1_000, settleMs: 60_000 },
  );
}

test("an api that ends a backup late removes older backups, and none that is newer or another project's", async () => {
  const images = new MemoryImageStore();
  const late = backup(3, { upload: { state: "saving", serverUuid: SERVER, rotation: 1 } });
  const given = [backup(1), backup(2, { owner: "p2" }), late, backup(4)];
  for (const image of given) await images.createImage(image, null);
  const settler = settlerOf(images, [{ task: { id: late.id }, outcome: "success" }]);
  await settler.settle();
  await settler.settle();
  const left = await Promise.all(given.map(({ id }) => images.image(id)));
  expect(left.map((image) => image?.name)).toEqual([undefined, "backup 2", "backup 3", "backup 4"]);
  expect(left[2]?.upload).toBeUndefined();
});

test("an image whose copy has ended becomes active although more than a thousand others are still being copied", async () => {
  const images = new MemoryImageStore();
  const upload = { state: "saving", serverUuid: SERVER, rotation: null } as const;
  const slow = Array.from({ length: 1_100 }, (_, index) =>
    backup(1, { id: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`, upload }),
  );
  const last = backup(1, { id: "ffffffff-0000-4000-8000-000000000000", upload });
  for (const image of [...slow, last]) await images.createImage(image, null);
  const settler = settlerOf(images, [
    ...slow.map(({ id }) => ({ task: { id }, outcome: null })),
    { task: { id: last.id }, outcome: "success" },
  ]);
  await settler.settle();
  await settler.settle();
  expect((await images.image(last.id))?.upload).toBeUndefined();
  expect((await images.image(slow[0]!.id))?.upload).toBeDefined();
});

test("an image that cannot be removed keeps no other image from becoming active", async () => {
  const images = new MemoryImageStore();
  const upload = { state: "saving", serverUuid: SERVER, rotation: null } as const;
  const [stuck, made] = [backup(1, { upload }), backup(2, { upload })];
  for (const image of [stuck, made]) await images.createImage(image, null);
  const tasks = [
    { task: { id: stuck.id }, outcome: "failed" },
    { task: { id: made.id }, outcome: "success" },
  ];
  const abandon = async () => Promise.reject(new Error("refused"));
  await expect(settlerOf(images, tasks, { abandon }).settle()).rejects.toThrow("1 images could not be settled");
  expect((await images.image(stuck.id))?.upload).toBeDefined();
  expect((await images.image(made.id))?.upload).toBeUndefined();
});
