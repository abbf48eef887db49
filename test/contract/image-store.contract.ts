import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import type { ImageQuery, ImageRecord, ImageStore } from "../../core/stores/api/image-store.ts";
import { serverSpec } from "./cell-fixtures.ts";

const ALL: ImageQuery = { visibleTo: null, name: null, marker: null, limit: 100 };

function image(values: Partial<ImageRecord> = {}): ImageRecord {
  return {
    id: randomUUID(),
    name: "cirros",
    owner: "p",
    visibility: "public",
    diskFormat: "qcow2",
    containerFormat: "bare",
    minDiskGib: 1,
    minRamMib: 64,
    isProtected: false,
    tags: ["small"],
    properties: { hw_cpu_policy: "dedicated", "trait:CUSTOM_X": "required" },
    createdAtMs: 1_700_000_000_000,
    updatedAtMs: 1_700_000_000_000,
    ...values,
  };
}

/** The images beside the requests of the servers that they were made of. */
export interface ImageStores {
  readonly store: ImageStore;
  readonly requests: Pick<ApiStore, "accept" | "cancel" | "markDeleted">;
}

/** The guarantees of both implementations of the images' store. */
export function imageStoreContract(name: string, makeStores: () => Promise<ImageStores>): void {
  describe(`images in ${name}`, () => {
    let store: ImageStore;
    let requests: ImageStores["requests"];
    beforeEach(async () => {
      ({ store, requests } = await makeStores());
    });

    test("an image is returned as it was created, and an id is used once", async () => {
      const one = image({ name: null, diskFormat: null });
      expect(await store.createImage(one, null)).toBe("created");
      expect(await store.createImage(image({ id: one.id, name: "other" }), null)).toBe("id-taken");
      expect(await store.image(one.id)).toEqual(one);
      expect(await store.image(randomUUID())).toBeNull();
      expect(await store.image("no uuid")).toBeNull();
    });

    test("lists the newest first, those of the same time by id, in pages without a gap", async () => {
      const times = [3, 1, 2, 2, 2].map((seconds) => 1_700_000_000_000 + seconds * 1000);
      const created = times.map((createdAtMs) => image({ createdAtMs }));
      for (const one of created) await store.createImage(one, null);
      const listed = await store.images(ALL);
      expect(listed.map(({ createdAtMs }) => createdAtMs)).toEqual([...times].sort((a, b) => b - a));
      const paged: ImageRecord[] = [];
      for (let marker: string | null = null; ; marker = paged.at(-1)!.id) {
        const page = await store.images({ ...ALL, marker, limit: 2 });
        if (page.length === 0) break;
        paged.push(...page);
      }
      expect(paged).toEqual(listed);
    });

    test("keeps what is known of an image's bits, until it is deleted", async () => {
      const data = { bytes: 9_007_199_254_740_991, md5: "0a".repeat(16), sha512: "0b".repeat(64), virtualBytes: null };
      const awaiting = image({ data: "awaited" });
      await store.createImage(awaiting, null);
      expect(await store.image(awaiting.id)).toEqual(awaiting);
      await store.updateImage(awaiting.id, (found) => ({ ...found, data }));
      expect(await store.images(ALL)).toEqual([{ ...awaiting, data }]);
      // A change that throws changes nothing, and its error reaches the caller.
      const failed = store.updateImage(awaiting.id, () => {
        throw new Error("no");
      });
      await expect(failed).rejects.toThrow("no");
      expect(await store.image(awaiting.id)).toEqual({ ...awaiting, data });
    });

    test("finds images by their properties, and pages of those whose upload has not ended", async () => {
      const upload = { state: "queued", serverUuid: randomUUID(), rotation: 2 } as const;
      const [plain, late, early] = [
        image({ properties: { backup_type: "daily", other: "x" } }),
        image({ upload, properties: { backup_type: "daily" }, createdAtMs: 1_700_000_002_000 }),
        image({ upload, properties: { backup_type: "weekly" }, createdAtMs: 1_700_000_001_000 }),
      ];
      for (const one of [plain, late, early]) await store.createImage(one, null);
      const daily = await store.images({ ...ALL, properties: { backup_type: "daily" } });
      expect(daily).toEqual([late, plain]);
      const [first, second] = [early, late].sort((a, b) => (a.id < b.id ? -1 : 1)) as [ImageRecord, ImageRecord];
      expect(await store.uploads(null, 10)).toEqual([first, second]);
      expect(await store.uploads(null, 1)).toEqual([first]);
      expect(await store.uploads(first.id, 1)).toEqual([second]);
      expect(await store.uploads(second.id, 1)).toEqual([]);
      await store.updateImage(early.id, ({ upload: _, ...whole }) => whole);
      expect(await store.uploads(null, 10)).toEqual([late]);
      expect(await store.image(early.id)).not.toHaveProperty("upload");
    });

    test("shows a project its own images and those that are open to all", async () => {
      const [own, open, other] = [
        image({ visibility: "private" }),
        image({ owner: "q", visibility: "community" }),
        image({ owner: "q", visibility: "private", name: "secret" }),
      ];
      for (const one of [own, open, other]) await store.createImage(one!, null);
      const seen = await store.images({ ...ALL, visibleTo: "p" });
      expect(new Set(seen.map(({ id }) => id))).toEqual(new Set([own!.id, open!.id]));
      expect((await store.images({ ...ALL, name: "secret" })).map(({ id }) => id)).toEqual([other!.id]);
      const { visibility } = open!;
      const found = await store.images({ ...ALL, visibility });
      expect(found).toEqual((await store.images(ALL)).filter((one) => one.visibility === visibility));
      expect(found).toContainEqual(open);
      const listed = async (query: Partial<ImageQuery>) =>
        (await store.images({ ...ALL, ...query })).map(({ id }) => id).sort();
      expect(await listed({ visibleTo: "p", communityOf: "p" })).toEqual([own!.id]);
      expect(await listed({ communityOf: "p" })).toEqual([own!.id, other!.id].sort());
      expect(await listed({ communityOf: "q" })).toEqual([own!.id, open!.id, other!.id].sort());
    });

    test("concurrent changes all take effect", async () => {
      const one = image({ properties: {} });
      await store.createImage(one, null);
      await Promise.all(
        ["a", "b", "c"].map((key) =>
          store.updateImage(one.id, (old) => ({ ...old, properties: { ...old.properties, [key]: "1" } })),
        ),
      );
      expect((await store.image(one.id))?.properties).toEqual({ a: "1", b: "1", c: "1" });
      expect(await store.updateImage(randomUUID(), (old) => old)).toBeNull();
    });

    test("the id of a deleted image stays taken, and is known to be deleted", async () => {
      const upload = { state: "saving", serverUuid: randomUUID(), rotation: null } as const;
      const [one, kept] = [image({ upload }), image()];
      for (const each of [one, kept]) await store.createImage(each, null);
      await store.deleteImage(one.id, 1_700_000_009_000);
      expect(await store.deletedImages([one.id, kept.id, randomUUID(), "no uuid"])).toEqual([one.id]);
      expect(await store.createImage(image({ id: one.id, owner: "q" }), null)).toBe("id-taken");
      expect(await store.updateImage(one.id, (old) => ({ ...old, name: "again" }))).toBeNull();
      expect(await store.images(ALL)).toEqual([kept]);
      expect(await store.uploads(null, 10)).toEqual([]);
    });

    test("the image of a shelved server ends with the server, or when a newer one of the server replaces it", async () => {
      const [shelved, gone, other] = [serverSpec(1), serverSpec(2), serverSpec(3)];
      await requests.accept([shelved, gone, other]);
      const at = (seconds: number) => 1_700_000_000_000 + seconds * 1_000;
      const upload = { state: "saving", serverUuid: shelved.uuid, rotation: null } as const;
      const [old, present, begun] = [
        image({ shelvedServer: shelved.uuid, createdAtMs: at(1) }),
        image({ shelvedServer: shelved.uuid, createdAtMs: at(2) }),
        image({ shelvedServer: shelved.uuid, createdAtMs: at(3), upload }),
      ];
      const [ofGone, kept, plain] = [
        image({ shelvedServer: gone.uuid }),
        image({ shelvedServer: gone.uuid, isProtected: true, createdAtMs: at(9) }),
        image(),
      ];
      const ofUnknown = image({ shelvedServer: randomUUID() });
      for (const one of [old, present, begun, ofGone, kept, plain, ofUnknown]) await store.createImage(one, null);
      expect(await store.image(present.id)).toEqual(present);
      await requests.cancel(gone.uuid, "req");
      await requests.markDeleted([{ cell: null, serverUuid: gone.uuid }]);
      const ended = [old.id, ofGone.id, ofUnknown.id].toSorted();
      expect(await store.endedShelved(null, 10)).toEqual(ended);
      // Nothing is deleted yet.
      expect(await store.endedShelved(null, 2)).toEqual(ended.slice(0, 2));
      expect(await store.endedShelved(ended[0] ?? null, 1)).toEqual(ended.slice(1, 2));
      expect(await store.endedShelved(ended[2] ?? null, 1)).toEqual([]);
      for (const id of ended) await store.deleteImage(id, at(10));
      const left = (await store.images(ALL)).map(({ id }) => id);
      expect(new Set(left)).toEqual(new Set([present.id, begun.id, kept.id, plain.id]));
      await store.updateImage(begun.id, ({ upload: _, ...whole }) => whole);
      expect(await store.endedShelved(null, 10)).toEqual([present.id]);
      // A change cannot take the server away from its image.
      await store.updateImage(present.id, ({ shelvedServer: _, ...whole }) => ({ ...whole, name: "renamed" }));
      expect(await store.endedShelved(null, 10)).toEqual([present.id]);
    });

    test("the images of servers that were asked to be unshelved are listed in pages, until that is taken back or they are deleted", async () => {
      const asked = Array.from({ length: 3 }, () => image({ shelvedServer: randomUUID() }));
      for (const one of [...asked, image({ shelvedServer: randomUUID() })]) await store.createImage(one, null);
      for (const { id } of asked)
        await store.updateImage(id, (old) => ({ ...old, unshelveAskedAtMs: 1_700_000_005_000 }));
      const ids = asked.map(({ id }) => id).toSorted();
      const listed = async (after: string | null, limit: number) =>
        (await store.unshelveAsked(after, limit)).map(({ id }) => id);
      expect(await listed(null, 10)).toEqual(ids);
      expect([await listed(null, 2), await listed(ids[1] ?? null, 2)]).toEqual([ids.slice(0, 2), ids.slice(2)]);
      expect((await store.unshelveAsked(null, 1))[0]).toMatchObject({ unshelveAskedAtMs: 1_700_000_005_000 });
      // Another change of the image leaves it as it is.
      await store.updateImage(ids[0] ?? "", (old) => ({ ...old, name: "renamed" }));
      expect(await listed(null, 1)).toEqual(ids.slice(0, 1));
      await store.updateImage(ids[0] ?? "", ({ unshelveAskedAtMs: _, ...old }) => old);
      await store.deleteImage(ids[1] ?? "", 1_700_000_009_000);
      expect(await listed(null, 10)).toEqual(ids.slice(2));
    });

    test("a project has no more images than it may have, also when many are created at once", async () => {
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => store.createImage(image({ owner: "q" }), 3)));
      expect(outcomes.filter((outcome) => outcome === "created")).toHaveLength(3);
      expect(outcomes.filter((outcome) => outcome === "too-many")).toHaveLength(5);
      expect(await store.createImage(image({ owner: "other" }), 3)).toBe("created");
      const one = (await store.images(ALL)).find(({ owner }) => owner === "q");
      await store.deleteImage(one!.id, 1_700_000_009_000);
      expect(await store.createImage(image({ owner: "q" }), 3)).toBe("created");
      expect(await store.createImage(image({ owner: "q" }), 3)).toBe("too-many");
      expect(await store.createImage(image({ owner: "q" }), null)).toBe("created");
    });

    test("an image is deleted once", async () => {
      const one = image();
      await store.createImage(one, null);
      expect(await store.deleteImage(one.id, 1_700_000_009_000)).toBe(true);
      expect(await store.deleteImage(one.id, 1_700_000_009_000)).toBe(false);
      expect(await store.deleteImage("no uuid", 0)).toBe(false);
      expect(await store.image(one.id)).toBeNull();
    });
  });
}
