import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { inspectImage, virtualBytesOf } from "./disk-image.ts";

let dir: string;
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-image-")));
  vi.stubEnv("PATH", `${dir}:/usr/bin:/bin`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});

/** Writes the beginning of a qcow2 image, with a `qemu-img` that does as the script says and notes that it was called. */
function imageWith(script: string, { version = 3, features = 0n } = {}): string {
  writeFileSync(join(dir, "qemu-img"), `#!/bin/sh\n: > ${dir}/called\n${script}\n`, { mode: 0o755 });
  const header = Buffer.alloc(104);
  header.write("514649fb", "hex");
  header.writeUInt32BE(version, 4);
  header.writeBigUInt64BE(8_388_608n, 24);
  header.writeBigUInt64BE(features, 72);
  const path = join(dir, "image");
  writeFileSync(path, header);
  return path;
}
const says = (words: string) => `echo "qemu-img: Could not open 'image': ${words}" >&2; exit 1`;

describe("an image about which qemu-img", () => {
  test.each([
    ["complains", says("Snapshot table too large"), /Snapshot table too large/],
    ["complains with the words of a fault of the host", says("L1 Input/output error table"), /L1 Input/],
    ["says more than anybody reads", "head -c 2000000 /dev/zero | tr '\\0' x", /longer than Berth reads/],
  ])("%s is refused everywhere", async (_what, script, message) => {
    const refused = { code: "image", isFinal: true, message: expect.stringMatching(message) };
    await expect(inspectImage(imageWith(script), "qcow2")).rejects.toMatchObject(refused);
  });

  test.each([
    ["cannot read", says("Could not read qcow2 header: Input/output error")],
    ["finds no room", says("No space left on device")],
    ["finds no memory", `${says("Cannot allocate memory").replace("; exit 1", "")}; echo more >&2; exit 1`],
    ["is killed", "kill -9 $$"],
    ["says nothing", "exit 1"],
  ])("%s may be good on another host", async (_what, script) => {
    const failed = { code: "storage", isFinal: false };
    await expect(inspectImage(imageWith(script), "qcow2")).rejects.toMatchObject(failed);
  });

  test("is not asked, because the header is refused, is refused everywhere", async () => {
    for (const header of [{ version: 9 }, { features: 1n << 20n }, { features: 4n }]) {
      const path = imageWith("", header);
      await expect(inspectImage(path, "qcow2")).rejects.toMatchObject({ code: "image", isFinal: true });
      await expect(virtualBytesOf(join(dir, "called"))).rejects.toThrow("ENOENT");
    }
  });
});

test("without qemu-img an image may be good on another host", async () => {
  const path = imageWith("");
  rmSync(join(dir, "qemu-img"));
  vi.stubEnv("PATH", dir);
  await expect(inspectImage(path, "qcow2")).rejects.toMatchObject({ code: "unavailable", isFinal: false });
});

test("the size of a disk is read from its header, and of no other file", async () => {
  expect(await virtualBytesOf(imageWith(""))).toBe(8_388_608);
  await expect(virtualBytesOf(join(dir, "qemu-img"))).rejects.toMatchObject({ code: "storage", isFinal: false });
});
