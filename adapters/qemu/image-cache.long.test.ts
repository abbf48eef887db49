import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { uploadedName } from "../../runtime/find-image-file.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import { markName } from "../../runtime/wanted-image.ts";
import { whyNoQemu } from "../../test/rigs/qemu-guests.ts";
import { type DamagedCopy, ImageCache } from "./image-cache.ts";
import { nanoImage } from "./nano-image.ts";
import { runTool } from "./run-tool.ts";

const MIB = 1_048_576;
const NEVER = new AbortController().signal;
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(`images${skipped === null ? "" : ` (skipped: ${skipped})`}`, () => {
  let dir: string;
  let source: string;
  let cache: ImageCache;
  let damaged: DamagedCopy[];
  const openCache = () =>
    new ImageCache({ sourceDir: source, dir: join(dir, "cache"), onDamaged: (copy) => damaged.push(copy) });
  beforeEach(() => {
    dir = makeOwnedDir("images");
    source = join(dir, "source");
    mkdirSync(source);
    damaged = [];
    cache = openCache();
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  const image = (id: string, expected: { format?: "qcow2" | "raw"; sha512?: string } = {}) =>
    cache.image({ id, format: expected.format ?? null, sha512: expected.sha512 ?? null }, NEVER);
  const createQcow2 = (name: string, ...options: string[]) =>
    runTool("qemu-img", ["create", "-q", "-f", "qcow2", ...options, join(source, name), "8M"]);

  test("raw and qcow2 images are copied once, with their hash", async () => {
    writeFileSync(join(source, "a.raw"), nanoImage());
    await createQcow2("b");
    const sha512 = createHash("sha512").update(nanoImage()).digest("hex");
    const [first, again] = await Promise.all([image("a", { sha512 }), image("a", { sha512 })]);
    expect(first).toEqual({ path: expect.stringContaining("cache"), format: "raw", virtualBytes: MIB, sha512 });
    expect(again).toBe(first);
    expect(await image("b")).toMatchObject({ format: "qcow2", virtualBytes: 8 * MIB });
    expect(readFileSync(first.path).equals(nanoImage())).toBe(true);
    expect(readdirSync(join(dir, "cache")).filter((name) => name.startsWith(".new"))).toEqual([]);
  });

  test("a changed image becomes another base, and guests keep the base on which they were built", async () => {
    const path = join(source, "a.raw");
    writeFileSync(path, nanoImage());
    const before = await image("a");
    writeFileSync(path, Buffer.alloc(2 * MIB));
    utimesSync(path, 1, 1);
    const after = await image("a");
    expect([after.virtualBytes, after.path === before.path]).toEqual([2 * MIB, false]);
    expect(readFileSync(before.path).equals(nanoImage())).toBe(true);
  });

  test("a build that is called off waits no longer for an image, and those that wait for it, too, get it", async () => {
    const sha512 = createHash("sha512").update(nanoImage()).digest("hex");
    const wanted = { id: "11111111-1111-1111-1111-111111111111", format: null, sha512 };
    writeFileSync(join(source, markName(wanted, "wanted")), "");
    const [first, second] = [new AbortController(), new AbortController()];
    const builds = [first, second].map(({ signal }) => cache.image(wanted, signal));
    first.abort(new Error("the build is not wanted"));
    await expect(builds[0]).rejects.toThrow("the build is not wanted");
    writeFileSync(join(source, uploadedName(wanted.id, sha512)), nanoImage());
    expect(await builds[1]).toMatchObject({ sha512 });
    await expect(cache.image(wanted, first.signal)).rejects.toThrow("the build is not wanted");
  });

  /** Gives the file of an image the name that the Image API gives it. */
  const store = (id: string, suffix = "") => {
    const bits = readFileSync(join(source, `${id}${suffix}`));
    renameSync(
      join(source, `${id}${suffix}`),
      join(source, uploadedName(id, createHash("sha512").update(bits).digest("hex"))),
    );
  };

  test("an image that refers to another file is refused, and everywhere if the cloud knows its content", async () => {
    writeFileSync(join(dir, "secret"), Buffer.alloc(8 * MIB));
    await createQcow2("backed", "-b", join(dir, "secret"), "-F", "raw");
    await createQcow2("external", "-o", `data_file=${join(dir, "data")}`);
    await expect(image("backed")).rejects.toMatchObject({ isFinal: false });
    store("backed");
    store("external");
    await expect(image("backed")).rejects.toMatchObject({
      isFinal: true,
      message: expect.stringContaining("backing file"),
    });
    await expect(image("external")).rejects.toMatchObject({
      isFinal: true,
      message: expect.stringContaining("another file"),
    });
  });

  test("an image with another format than declared is refused, and everywhere if the cloud knows its content", async () => {
    writeFileSync(join(source, "a.qcow2"), nanoImage());
    writeFileSync(join(source, "vmdk"), Buffer.concat([Buffer.from("KDMV"), Buffer.alloc(MIB)]));
    await createQcow2("disguised.raw");
    await expect(image("a")).rejects.toMatchObject({
      isFinal: false,
      message: expect.stringContaining("declared as qcow2"),
    });
    await expect(image("disguised")).rejects.toMatchObject({
      isFinal: false,
      message: expect.stringContaining("content is qcow2"),
    });
    store("a", ".qcow2");
    store("vmdk");
    await expect(image("a", { format: "qcow2" })).rejects.toMatchObject({
      isFinal: true,
      message: expect.stringContaining("declared as qcow2"),
    });
    await expect(image("vmdk")).rejects.toMatchObject({ isFinal: true, message: expect.stringContaining("VMDK") });
  });

  test("an image with another hash is refused, and a missing one is only missing here", async () => {
    writeFileSync(join(source, "a.raw"), nanoImage());
    await expect(image("a", { sha512: "00".repeat(64) })).rejects.toMatchObject({
      isFinal: false,
      message: expect.stringContaining("SHA-512"),
    });
    // A broken file with another hash is broken here.
    writeFileSync(join(source, "c.qcow2"), Buffer.concat([Buffer.from("QFI\xfb", "latin1"), Buffer.alloc(100)]));
    await expect(image("c", { sha512: "00".repeat(64) })).rejects.toMatchObject({
      isFinal: false,
      message: expect.stringContaining("SHA-512"),
    });
    await expect(image("b")).rejects.toMatchObject({
      isFinal: false,
      message: "this host has no file of image b: copy the image into its directory of images",
    });
  });

  test("a copy is known to the cloud if its hash is stated or the api has stored the file, while it stays as it was", async () => {
    const sha512 = createHash("sha512").update(nanoImage()).digest("hex");
    const unstated = { format: null, sha512: null };
    writeFileSync(join(source, "a.raw"), nanoImage());
    writeFileSync(join(source, uploadedName("b", sha512)), nanoImage());
    const [a, b] = [await image("a"), await image("b")];
    expect(await cache.isAsKnown({ id: "a", ...unstated }, a.path, NEVER)).toBe(false);
    expect(await cache.isAsKnown({ id: "a", ...unstated, sha512 }, a.path, NEVER)).toBe(true);
    expect(await cache.isAsKnown({ id: "b", ...unstated }, b.path, NEVER)).toBe(true);
    expect(await cache.isAsKnown({ id: "b", ...unstated }, a.path, NEVER)).toBe(false);
    damage(b.path, 5, 0xff);
    expect(await cache.isAsKnown({ id: "b", ...unstated }, b.path, NEVER)).toBe(false);
    rmSync(b.path);
    expect(await cache.isAsKnown({ id: "b", ...unstated }, b.path, NEVER)).toBe(false);
  });

  test("no file of this machine becomes an image to which another host has made a symbolic link", async () => {
    writeFileSync(join(dir, "agent.key"), "a private key");
    symlinkSync(join(dir, "agent.key"), join(source, "a.raw"));
    await expect(image("a")).rejects.toMatchObject({
      isFinal: false,
      message: expect.stringContaining("a.raw is a symbolic link"),
    });
    expect(readdirSync(join(dir, "cache"))).toEqual([]);
  });

  test("the copy of an image serves on when the image's file was removed, unless another hash is stated", async () => {
    writeFileSync(join(source, "a.raw"), nanoImage());
    const sha512 = createHash("sha512").update(nanoImage()).digest("hex");
    const before = await image("a");
    rmSync(join(source, "a.raw"));
    expect(await image("a", { sha512 })).toEqual(before);
    expect(await image("a")).toEqual(before);
    await expect(image("a", { format: "qcow2", sha512 })).rejects.toMatchObject({
      isFinal: true,
      message: expect.stringContaining("declared as qcow2"),
    });
    const missing = { isFinal: false, message: expect.stringContaining("this host has no file of image a") };
    await expect(image("a", { sha512: "00".repeat(64) })).rejects.toMatchObject(missing);
    rmSync(before.path);
    await expect(image("a", { sha512 })).rejects.toMatchObject(missing);
  });

  /** Writes to a copy as a program could that hides it: the size and the time of the last change stay. */
  const damage = (path: string, at: number, byte: number) => {
    const { atime, mtime } = statSync(path);
    const file = openSync(path, "r+");
    writeSync(file, Buffer.of(byte), 0, 1, at);
    closeSync(file);
    utimesSync(path, atime, mtime);
  };

  test("a copy that was changed on the host is made again before anything is built on it, also for guests that have it", async () => {
    writeFileSync(join(source, "a.raw"), nanoImage());
    const before = await image("a");
    damage(before.path, 5, 0xff);
    expect(await image("a")).toEqual(before);
    expect(readFileSync(before.path).equals(nanoImage())).toBe(true);
    expect(damaged).toEqual([{ imageId: "a", path: before.path }]);
    expect(await openCache().image({ id: "a", format: null, sha512: null }, NEVER)).toEqual(before);
    expect(damaged).toHaveLength(1);
  });

  test("a copy that was changed is not used when the image's file is gone", async () => {
    writeFileSync(join(source, "a.raw"), nanoImage());
    const { path, sha512 } = await image("a");
    damage(path, 5, 0xff);
    rmSync(join(source, "a.raw"));
    const missing = { isFinal: false, message: expect.stringContaining("no file of image a") };
    await expect(image("a", { sha512 })).rejects.toMatchObject(missing);
    await expect(image("a")).rejects.toMatchObject(missing);
    writeFileSync(join(source, "a.raw"), nanoImage());
    expect(await image("a", { sha512 })).toMatchObject({ path, sha512 });
  });

  test("a copy whose content is the same after all is used as it is, and so is one that an earlier version made", async () => {
    writeFileSync(join(source, "a.raw"), nanoImage());
    const before = await image("a");
    const { ino } = statSync(before.path);
    chmodSync(before.path, 0o600);
    expect(await image("a")).toEqual(before);
    const index = join(dir, "cache", "a.json");
    const { mark: _, ...earlier } = JSON.parse(readFileSync(index, "utf8")) as Readonly<Record<string, unknown>>;
    writeFileSync(index, JSON.stringify(earlier));
    expect(await openCache().image({ id: "a", format: null, sha512: null }, NEVER)).toEqual(before);
    expect([statSync(before.path).ino, damaged]).toEqual([ino, []]);
  });

  test("a copy that cannot be read is made again", async () => {
    writeFileSync(join(source, "a.raw"), nanoImage());
    const before = await image("a");
    const index = join(dir, "cache", "a.json");
    const entry = JSON.parse(readFileSync(index, "utf8")) as { readonly path: string };
    // A file whose reading fails with EIO, and that can be replaced.
    const broken = join(dir, "cache", "broken");
    symlinkSync("/proc/self/mem", broken);
    writeFileSync(index, JSON.stringify({ ...entry, path: broken }));
    expect(await image("a")).toEqual(before);
    expect(damaged).toContainEqual({ imageId: "a", path: broken });
  });

  test("a copy without the image's file that cannot be used is named in the refusal, and its damage is told once", async () => {
    writeFileSync(join(source, "a.raw"), nanoImage());
    const { path, sha512 } = await image("a");
    damage(path, 5, 0xff);
    rmSync(join(source, "a.raw"));
    for (let times = 0; times < 2; times += 1)
      await expect(image("a", { sha512 })).rejects.toThrow(
        "this host has only a copy of it that was changed or cannot be read, and no file of image a: copy the image into its directory of images",
      );
    expect(damaged).toEqual([{ imageId: "a", path }]);
  });

  test("a copy that hosts know by different inodes is read once", async () => {
    writeFileSync(join(source, "a.raw"), nanoImage());
    const before = await image("a");
    const index = join(dir, "cache", "a.json");
    const entry = JSON.parse(readFileSync(index, "utf8")) as { readonly mark: object };
    // Its content would be found wrong if it were read.
    writeFileSync(index, JSON.stringify({ ...entry, sha512: "of nothing", mark: { ...entry.mark, inode: 1 } }));
    expect(await image("a")).toEqual({ ...before, sha512: "of nothing" });
  });

  describe("the base of a guest that is booted", () => {
    test("is left alone while nothing has written to it, made again when its content has changed, and refused when it cannot be made", async () => {
      writeFileSync(join(source, "a.raw"), nanoImage());
      const { path, sha512 } = await image("a");
      await cache.checkBase(sha512, NEVER);
      damage(path, 5, 0xff);
      await cache.checkBase(sha512, NEVER);
      expect(readFileSync(path).equals(nanoImage())).toBe(true);
      damage(path, 5, 0xff);
      rmSync(join(source, "a.raw"));
      await expect(openCache().checkBase(sha512, NEVER)).rejects.toThrow(
        `the guest's disk is built on ${path}, which was changed or cannot be read on this host, and it cannot be made again`,
      );
      writeFileSync(join(source, "a.raw"), nanoImage());
      await openCache().checkBase(sha512, NEVER);
      expect(readFileSync(path).equals(nanoImage())).toBe(true);
    });

    test("is checked also if the image has another content by now, and is read only once then", async () => {
      writeFileSync(join(source, "a.raw"), nanoImage());
      const { path, sha512 } = await image("a");
      writeFileSync(join(source, "a.raw"), Buffer.alloc(2 * MIB));
      utimesSync(join(source, "a.raw"), 1, 1);
      expect((await image("a")).path).not.toBe(path);
      await cache.checkBase(sha512, NEVER);
      expect(readdirSync(join(dir, "cache"))).toContain(`${basename(path)}.mark`);
      damage(path, 5, 0xff);
      await expect(cache.checkBase(sha512, NEVER)).rejects.toThrow(/cannot be made again: .* another SHA-512/);
      expect(damaged).toEqual([{ imageId: "a", path }]);
    });

    test("goes on being checked when the boot that asked for it is called off, and is unknown to a host that does not have it", async () => {
      writeFileSync(join(source, "a.raw"), nanoImage());
      const { path, sha512 } = await image("a");
      damage(path, 5, 0xff);
      const end = new AbortController();
      const checked = cache.checkBase(sha512, end.signal);
      end.abort(new Error("the boot is not wanted"));
      await expect(checked).rejects.toThrow("the boot is not wanted");
      await cache.checkBase(sha512, NEVER);
      expect(readFileSync(path).equals(nanoImage())).toBe(true);
      await cache.checkBase("ab".repeat(64), NEVER);
    });
  });

  test.each(["../a", "a/b", "..", ".hidden", ""])("%j is not the id of an image", async (id) => {
    await expect(image(id)).rejects.toMatchObject({ isFinal: true });
  });
});
