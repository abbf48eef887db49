import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { RescueImage } from "../../../proto/gen/berth/shared.ts";
import { StorageGate } from "../../../runtime/storage-gate.ts";
import { ROOT_DISK } from "./machine-of-server.ts";
import { rescueGuest } from "./rescue-guest.ts";

const MIB = 2 ** 20;

/** Rescues a guest, whose root disk has 1 MiB, with an image of this size. Returns the states for which the guest was asked, and the refusal. */
async function rescueWith(virtualBytes: number, disks: readonly object[] = [ROOT_DISK]) {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-rescue-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const header = Buffer.alloc(104);
  header.write("514649fb00000003", "hex");
  header.writeBigUInt64BE(BigInt(MIB), 24);
  writeFileSync(join(dir, ROOT_DISK.file), header);
  let looks = 0;
  const guest = {
    ...{ dir, storage: new StorageGate({ name: dir }), record: { machine: { disks }, receives: null } },
    state: async () => {
      looks += 1;
      if (looks > 1) throw new Error("the guest is about to be stopped");
      return "running";
    },
  };
  const base = { path: join(dir, "base"), format: "raw", virtualBytes, sha512: "" };
  const control = { images: { image: async () => base }, signal: new AbortController().signal };
  return rescueGuest(
    guest as unknown as QemuGuest,
    RescueImage.fromPartial({ imageRef: "i" }),
    control as unknown as Parameters<typeof rescueGuest>[2],
  ).catch((error: unknown) => error);
}

test("a rescue image with a larger disk than the server's own is refused everywhere, before the guest is stopped", async () => {
  expect(await rescueWith(10 * 2 ** 40)).toMatchObject({
    ...{ code: "image", isFinal: true },
    message: expect.stringContaining(`a disk of ${10 * 2 ** 40} bytes, the server's own has ${MIB}`),
  });
  expect(await rescueWith(MIB + 1)).toMatchObject({ code: "image", isFinal: true });
  for (const bytes of [MIB, 512])
    expect(await rescueWith(bytes)).toEqual(new Error("the guest is about to be stopped"));
});

test("a guest without a local root disk gets no disk for a rescue", async () => {
  const error = await rescueWith(512, [{ node: "disk1", file: "disk1.qcow2" }]);
  expect(error).toMatchObject({ code: "state", message: expect.stringContaining("boots from a volume") });
});
