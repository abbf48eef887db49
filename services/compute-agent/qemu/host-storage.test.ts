import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { HostStorage } from "./host-storage.ts";

const settle = () => new Promise((resolve) => setImmediate(resolve));

function storageOf() {
  const dir = mkdtempSync(join(tmpdir(), "berth-storage-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const clock = new ManualClock();
  const storage = new HostStorage({
    ...{ clock, instancesPath: dir, imagesPath: dir, imageCache: dir, volumeDir: dir, silentAfterMs: 15_000 },
  });
  onTestFinished(() => storage.close());
  return { clock, storage };
}

test("a storage that does not answer a probe keeps no other from being asked", async () => {
  const { clock, storage } = storageOf();
  const hung = Promise.withResolvers<never>();
  hung.promise.catch(() => undefined);
  const asked = { images: 0, copies: 0 };
  storage.images.source.look = () => {
    asked.images += 1;
    return hung.promise;
  };
  storage.images.copies.look = async () => {
    asked.copies += 1;
    throw new Error("ENOENT");
  };
  storage.start();
  for (let times = 1; times <= 5; times++) {
    clock.advance(10_000);
    await settle();
    expect(asked).toEqual({ images: 1, copies: times });
  }
  hung.reject(new Error("EIO"));
  await settle();
  clock.advance(10_000);
  expect(asked).toEqual({ images: 2, copies: 6 });
});
