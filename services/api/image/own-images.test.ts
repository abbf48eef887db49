import { createHash, randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { MemoryImageStore } from "../../../adapters/memory/api/memory-image-store.ts";
import type { ImageCaller } from "../../../core/stores/api/image-service.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { overriding } from "../../../runtime/overriding.ts";
import { imageServiceContract } from "../../../test/contract/image-service.contract.ts";
import { createImage, findOwn } from "./change-images.ts";
import { ImageCatalog } from "./image-catalog.ts";
import { imageView } from "./image-view.ts";
import { OwnImages } from "./own-images.ts";

const member = (projectId: string): ImageCaller => ({ projectId, isAdmin: false, token: null, requestId: "req-1" });

imageServiceContract("the api itself", async () => {
  const store = new MemoryImageStore();
  const catalog = new ImageCatalog({ store, clock: systemClock }, { cacheMs: 0 });
  const deps = { store, catalog, clock: systemClock, ownedMax: null, data: "required" as const };
  return {
    images: new OwnImages(deps),
    ann: member("ann"),
    bob: member("bob"),
    sortsBySeconds: false,
    upload: async ({ projectId }, { bits, ...fields }) => {
      const identity = { projectId, userId: projectId, isAdmin: false, roles: [] };
      const { id } = await createImage(deps, identity, { ...fields, id: randomUUID() });
      if (bits !== null) {
        const [md5, sha512] = ["md5", "sha512"].map((name) => createHash(name).update(bits).digest("hex"));
        const data = { bytes: bits.length, md5: md5 ?? "", sha512: sha512 ?? "", virtualBytes: null };
        await store.updateImage(id, (image) => ({ ...image, data }));
      }
      return id;
    },
    copyDisk: async () => undefined,
    show: async (id) => {
      const admin = { projectId: "admin", userId: "admin", isAdmin: true, roles: [] };
      const found = await findOwn(store, admin, id).catch(() => null);
      return found && imageView(found);
    },
    close: async () => undefined,
  };
});

test("a short page is filled from images that are older than many others", async () => {
  let nowMs = 0;
  const clock = overriding(systemClock, { now: () => (nowMs += 1) });
  const store = new MemoryImageStore();
  const catalog = new ImageCatalog({ store, clock }, { cacheMs: 0 });
  const deps = { store, catalog, clock, ownedMax: null, data: "required" as const };
  const identity = { projectId: "ann", userId: "ann", isAdmin: false, roles: [] };
  const { id } = await createImage(deps, identity, { name: "large", min_disk: 7 });
  for (let count = 0; count < 60; count += 1) await createImage(deps, identity, { name: "small" });
  const query = { name: null, marker: null, limit: 1, filters: { minDiskGib: 7 } };
  expect(await new OwnImages(deps).list(query, member("ann"))).toMatchObject([{ id }]);
});
