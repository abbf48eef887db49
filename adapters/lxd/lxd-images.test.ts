import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, test } from "vitest";
import { uploadedName } from "../../runtime/find-image-file.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import { LxdError } from "./lxd-error.ts";
import { LxdImages } from "./lxd-images.ts";

const NEVER = new AbortController().signal;
const TEXT = "this is no image\n".repeat(100);
const sha256Of = (bits: string) => createHash("sha256").update(bits).digest("hex");
const SHA512 = createHash("sha512").update(TEXT).digest("hex");

let dir: string;
let id: string;
/** The words with which LXD refuses the import, or null if it takes the image. */
let refusal: string | null;
let images: LxdImages;
/** The bits that LXD has got, and those of its images that were deleted again, by their fingerprints. */
let imported: string[];
let deleted: string[];

beforeEach(() => {
  dir = join(makeOwnedDir("lxd-images"), randomUUID());
  mkdirSync(dir);
  id = randomUUID();
  refusal = "Image is not a tarball";
  [imported, deleted] = [[], []];
  const client = {
    call: async (path: string, { method = "GET" }: { readonly method?: string } = {}) => {
      if (method === "GET") throw new LxdError("not-found", "Image not found");
      return path;
    },
    run: async (path: string, { method = "GET" }: { readonly method?: string }) => {
      if (method === "DELETE") deleted.push(path);
      return { id: "1", status_code: 200, err: "", resources: null, metadata: null };
    },
    importImage: async (file: Readable) => {
      const bits = await text(file);
      if (refusal !== null) throw new LxdError("refused", refusal);
      imported.push(bits);
      return sha256Of(bits);
    },
  };
  images = new LxdImages(client, dir);
});

/** A file that an operator or the Image API has put there, and the hash that the image service states. */
const CASES = [
  ["whose hash the image service states is refused on every host", "operator", SHA512, true],
  ["that the Image API has stored is refused on every host", "api", null, true],
  ["that an operator has put there, without a stated hash, is refused on this host", "operator", null, false],
] as const;

describe("a broken file of an image", () => {
  test.each(CASES)("%s, when LXD does not import it", async (_, writer, sha512, isFinal) => {
    writeFileSync(join(dir, writer === "api" ? uploadedName(id, SHA512) : id), TEXT);
    const message = expect.stringContaining("it is no whole tarball");
    await expect(images.usable({ id, sha512 }, NEVER)).rejects.toMatchObject({ code: "image", isFinal, message });
  });

  test.each(CASES)("%s, when LXD does not unpack it", async (_, writer, sha512, isFinal) => {
    writeFileSync(join(dir, writer === "api" ? uploadedName(id, SHA512) : id), TEXT);
    refusal = null;
    const image = await images.usable({ id, sha512 }, NEVER);
    const created = Promise.reject(new LxdError("refused", "Unpack failed"));
    await expect(images.blamed(image, created, NEVER)).rejects.toMatchObject({ code: "image", isFinal });
  });

  test("is refused on this host alone when it is no longer what LXD got", async () => {
    refusal = null;
    writeFileSync(join(dir, id), TEXT);
    const image = await images.usable({ id, sha512: SHA512 }, NEVER);
    writeFileSync(join(dir, id), TEXT.slice(1));
    const created = Promise.reject(new LxdError("refused", "Unpack failed"));
    await expect(images.blamed(image, created, NEVER)).rejects.toMatchObject({ code: "image", isFinal: false });
  });

  test("is refused for each of two builds by what is known of its own image", async () => {
    writeFileSync(join(dir, id), TEXT);
    const outcomes = [SHA512, null].map((sha512) => images.usable({ id, sha512 }, NEVER).catch((error) => error));
    const errors = await Promise.all(outcomes);
    expect(errors.map(({ isFinal }: LxdError) => isFinal)).toEqual([true, false]);
  });
});

describe("a file of an image that another host has changed", () => {
  test("is not imported if it is a symbolic link to a file of this machine", async () => {
    const secret = join(dir, "agent.key");
    writeFileSync(secret, "a private key");
    symlinkSync(secret, join(dir, id));
    refusal = null;
    await expect(images.usable({ id, sha512: null }, NEVER)).rejects.toMatchObject({
      code: "image",
      isFinal: false,
      message: expect.stringContaining("is a symbolic link"),
    });
    expect(imported).toEqual([]);
  });

  test("after its hash was taken is not used, although its size and time are the same, and leaves LXD again", async () => {
    const path = join(dir, id);
    const write = (bits: string) => {
      writeFileSync(path, bits);
      utimesSync(path, 1, 1);
    };
    write(TEXT);
    await expect(images.usable({ id, sha512: SHA512 }, NEVER)).rejects.toThrow("it is no whole tarball");
    const other = TEXT.replaceAll("no image", "an image").slice(0, TEXT.length);
    expect(other).toHaveLength(TEXT.length);
    write(other);
    refusal = null;
    await expect(images.usable({ id, sha512: SHA512 }, NEVER)).rejects.toMatchObject({
      code: "image",
      isFinal: false,
      message: expect.stringContaining("has changed while it was imported"),
    });
    expect(deleted).toEqual([`/1.0/images/${sha256Of(other)}`]);
    write(TEXT);
    expect(await images.usable({ id, sha512: SHA512 }, NEVER)).toMatchObject({
      source: { fingerprint: sha256Of(TEXT) },
    });
  });
});
