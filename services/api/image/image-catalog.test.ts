import { describe, expect, it } from "vitest";
import { MemoryImageStore } from "../../../adapters/memory/api/memory-image-store.ts";
import type { ImageRecord } from "../../../core/stores/api/image-store.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { ImageCatalog } from "./image-catalog.ts";

const IMAGE: ImageRecord = {
  id: "70a599e0-31e7-49b7-b260-868f441e862b",
  name: "cirros",
  owner: "p",
  visibility: "public",
  diskFormat: null,
  containerFormat: null,
  minDiskGib: 0,
  minRamMib: 0,
  isProtected: false,
  tags: [],
  properties: {},
  createdAtMs: 0,
  updatedAtMs: 0,
};

describe("ImageCatalog", () => {
  it("caches an image, or its absence, for a time, and drops the entry on forget", async () => {
    const store = new MemoryImageStore();
    const clock = new ManualClock(0);
    const catalog = new ImageCatalog({ store, clock }, { cacheMs: 1_000 });
    expect(await catalog.find(IMAGE.id)).toBeNull();
    await store.createImage(IMAGE, null);
    expect(await catalog.find(IMAGE.id)).toBeNull();
    catalog.forget(IMAGE.id);
    expect(await catalog.find(IMAGE.id)).toEqual(IMAGE);
    await store.deleteImage(IMAGE.id);
    expect(await catalog.find(IMAGE.id)).toEqual(IMAGE);
    clock.advance(1_000);
    expect(await catalog.find(IMAGE.id)).toBe("deleted");
    expect(await catalog.image(IMAGE.id)).toBeNull();
  });
});
