import { createHash, randomUUID } from "node:crypto";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findImageFile, uploadedName } from "../../runtime/find-image-file.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import { awaitImageFile } from "../../runtime/wanted-image.ts";
import { ImageDirectory } from "./image-directory.ts";
import { openImageFiles } from "./open-image-files.ts";

const BITS = Buffer.alloc(200_000, "guest");
const SHA512 = createHash("sha512").update(BITS).digest("hex");

let root: string;
let dir: string;
let files: ImageDirectory;
const id = randomUUID();
beforeEach(() => {
  root = makeOwnedDir("image-files");
  dir = join(root, "images");
  mkdirSync(dir);
  files = new ImageDirectory(dir);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const store = (bits: Readable, { diskFormat = "raw", bytesMax = 1_000_000 } = {}) =>
  files.store(bits, { id, diskFormat, bytesMax });
const read = async (sha512: string | null) => {
  const found = await files.read(id, sha512);
  return found === null ? null : { bytes: found.bytes, bits: await buffer(found.bits) };
};

describe("a directory of images", () => {
  test("returns the bits that it stored, and tells their size and hashes", async () => {
    const md5 = createHash("md5").update(BITS).digest("hex");
    const halves = [BITS.subarray(0, 70), BITS.subarray(70)];
    expect(await store(Readable.from(halves))).toEqual({ bytes: 200_000, md5, sha512: SHA512, virtualBytes: null });
    expect(await read(SHA512)).toEqual({ bytes: 200_000, bits: BITS });
    expect(await read(null)).toEqual({ bytes: 200_000, bits: BITS });
    expect(await read("0".repeat(128))).toBeNull();
    await files.discard(id, SHA512);
    await files.discard(id, SHA512);
    expect([await read(null), readdirSync(dir)]).toEqual([null, []]);
  });

  test("leaves no file behind when the bits are too many, of another format, missing, or cut off", async () => {
    const breaking = new Readable({ read() {} });
    breaking.push(BITS);
    const broken = store(breaking);
    breaking.destroy(new Error("the connection was closed"));
    await expect(broken).rejects.toMatchObject({ code: "broken-off" });
    await expect(store(Readable.from([BITS]), { bytesMax: 199_999 })).rejects.toMatchObject({ code: "too-large" });
    await expect(store(Readable.from([BITS]), { diskFormat: "qcow2" })).rejects.toMatchObject({ code: "refused" });
    await expect(store(Readable.from([]))).rejects.toMatchObject({ code: "none" });
    expect(readdirSync(dir)).toEqual([]);
    rmSync(dir, { recursive: true });
    await expect(store(Readable.from([BITS]))).rejects.toMatchObject({ code: "storage" });
  });

  test("keeps two uploads to one image apart, and takes neither without a hash", async () => {
    const other = Buffer.alloc(10, "other");
    const [one, two] = await Promise.all([store(Readable.from([BITS])), store(Readable.from([other]))]);
    expect([(await read(one.sha512))?.bits, (await read(two.sha512))?.bits]).toEqual([BITS, other]);
    expect(await read(null)).toBeNull();
  });

  test("finds the files that hosts and operators put there under the image's id", async () => {
    writeFileSync(join(dir, `${id}.qcow2`), "snapshot");
    mkdirSync(join(dir, uploadedName(id, SHA512)));
    expect((await read(null))?.bits.toString()).toBe("snapshot");
    // Nothing but the bits with the hash is returned where the hash is known.
    rmSync(join(dir, uploadedName(id, SHA512)), { recursive: true });
    expect(await read(SHA512)).toBeNull();
    expect(await findImageFile(dir, { id, sha512: null }, [".raw", ".qcow2"])).toMatchObject({ suffix: ".qcow2" });
    expect(await findImageFile(dir, { id, sha512: null }, [".raw"])).toBeNull();
  });

  test("returns as many bytes as it says, even of a file that grows or is empty", async () => {
    const path = join(dir, `${id}.raw`);
    writeFileSync(path, "guest");
    const found = await files.read(id, null);
    appendFileSync(path, " and more");
    expect([found?.bytes, (await buffer(found?.bits ?? Readable.from([]))).toString()]).toEqual([5, "guest"]);
    truncateSync(path);
    expect(await read(null)).toEqual({ bytes: 0, bits: Buffer.alloc(0) });
  });

  test("never opens a file elsewhere that a hash names", async () => {
    const sha512 = `/../../${basename(dir)}-outside`;
    writeFileSync(`${dir}-outside`, "secret");
    mkdirSync(join(dir, `${id}-`));
    await expect(findImageFile(dir, { id, sha512 }, [""])).rejects.toThrow(/128 hexadecimal digits/);
    const refused = { code: "refused", message: expect.stringMatching(/128 hexadecimal digits/) };
    await expect(awaitImageFile(dir, { id, sha512 }, [""])).rejects.toMatchObject(refused);
    rmSync(`${dir}-outside`);
  });

  test("does not call a file missing that it cannot look at", async () => {
    symlinkSync(join(dir, `${id}.raw`), join(dir, `${id}.raw`));
    await expect(read(null)).rejects.toThrow(/ELOOP/);
  });

  test("reads no file of its own machine to which a host has made a symbolic link", async () => {
    const secret = join(root, "password");
    writeFileSync(secret, "secret");
    symlinkSync(secret, join(dir, `${id}.qcow2`));
    await expect(read(null)).rejects.toThrow(/is a symbolic link/);
    symlinkSync(secret, join(dir, uploadedName(id, SHA512)));
    await expect(read(SHA512)).rejects.toThrow(/is a symbolic link/);
  });

  test("says that it does not take bits whose name is taken by a directory, without naming the path", async () => {
    mkdirSync(join(dir, uploadedName(id, SHA512), "in-the-way"), { recursive: true });
    const refused = await store(Readable.from([BITS])).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "storage", message: expect.not.stringContaining(dir) });
    expect(readdirSync(dir)).toEqual([uploadedName(id, SHA512)]);
  });

  test("is cleaned again by an upload after an hour", async () => {
    let nowMs = Date.now();
    files = new ImageDirectory(dir, { now: () => nowMs });
    await files.check();
    const part = join(dir, `.${id}.${randomUUID()}.upload`);
    writeFileSync(part, "half");
    utimesSync(part, 1, 1);
    await store(Readable.from([BITS]));
    expect(existsSync(part)).toBe(true);
    nowMs += 3_600_001;
    await store(Readable.from([BITS]));
    expect(existsSync(part)).toBe(false);
  });

  test("is cleaned of uploads whose process died more than a day ago when it is opened", async () => {
    const [old, young, other] = [`.${id}.${randomUUID()}.upload`, `.${id}.${randomUUID()}.upload`, `.${id}.part`];
    for (const name of [old, young, other]) writeFileSync(join(dir, name), "half");
    for (const name of [old, other]) utimesSync(join(dir, name), 1, 1);
    expect(await openImageFiles(null)).toBeNull();
    expect(await openImageFiles(dir)).toBeInstanceOf(ImageDirectory);
    expect([old, young, other].map((name) => existsSync(join(dir, name)))).toEqual([false, true, true]);
    await expect(openImageFiles(join(dir, "none"))).rejects.toThrow(/--images-path.*cannot be used/);
  });
});
