import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ImageDirectory } from "../../../adapters/images/image-directory.ts";
import type { ImageRecord } from "../../../core/stores/api/image-store.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { makeOwnedDir } from "../../../runtime/owned-dir.ts";
import type { ImageDataRule } from "./change-images.ts";
import { uploadImage } from "./upload-image.ts";

const BITS = Buffer.alloc(1_000, "guest");
const id = randomUUID();
const OWNER = { projectId: "p", isAdmin: false } as Parameters<typeof uploadImage>[1];

let root: string;
let files: ImageDirectory;
let image: ImageRecord;
/** What happens between the moment at which an upload's file is whole and the change of the image's row. */
let beforeChange: () => Promise<void>;
beforeEach(() => {
  root = makeOwnedDir("upload-image");
  mkdirSync(join(root, "images"));
  files = new ImageDirectory(join(root, "images"));
  beforeChange = async () => {};
  image = {
    ...{ id, name: null, owner: "p", visibility: "private", diskFormat: "raw", containerFormat: "bare" },
    ...{ minDiskGib: 0, minRamMib: 0, isProtected: false, tags: [], properties: {}, createdAtMs: 0, updatedAtMs: 0 },
    data: "awaited",
  };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const upload = (data: ImageDataRule = "required", bits = BITS) => {
  const store = {
    image: async () => image,
    updateImage: async (_id: string, change: (of: ImageRecord) => ImageRecord) => {
      const before = beforeChange;
      beforeChange = async () => {};
      await before();
      image = change(image);
      return image;
    },
  };
  const deps = { store, files, data, clock: systemClock, catalog: { forget() {} } } as unknown as Parameters<
    typeof uploadImage
  >[0];
  return uploadImage(deps, OWNER, { id, bits: Readable.from([bits]), bytesMax: 10_000 });
};

test("an upload that is refused because the format was changed leaves the same bits of another upload", async () => {
  beforeChange = async () => {
    // The other upload's file is whole. This one began before the format was changed, and ends before the other one.
    const { diskFormat } = image;
    beforeChange = async () => {
      image = { ...image, diskFormat: "iso" };
    };
    await expect(upload()).rejects.toMatchObject({ status: 409 });
    image = { ...image, diskFormat };
  };
  await upload();
  const sha512 = createHash("sha512").update(BITS).digest("hex");
  expect(image.data).toMatchObject({ sha512 });
  const kept = await files.read(id, sha512);
  expect(await buffer(kept?.bits ?? Readable.from([]))).toEqual(BITS);
});

test.each([{ diskFormat: "iso" }, { diskFormat: null }, { containerFormat: null }])(
  "an upload during which the image became %o is refused",
  async (changes) => {
    beforeChange = async () => {
      image = { ...image, ...changes };
    };
    await expect(upload()).rejects.toMatchObject({ status: 409 });
    expect(image.data).toBe("awaited");
  },
);

test("an image without data may get some once if images need none, and otherwise has them from an operator", async () => {
  const { data: _, ...bare } = image;
  image = bare;
  await expect(upload()).rejects.toMatchObject({ status: 409 });
  await expect(upload("required", Buffer.alloc(0))).rejects.toMatchObject({ status: 409 });
  await upload("optional", Buffer.alloc(0));
  expect(image).toEqual(bare);
  await upload("optional");
  expect(image.data).toMatchObject({ bytes: 1_000 });
  await expect(upload("optional")).rejects.toMatchObject({ status: 409 });
});
