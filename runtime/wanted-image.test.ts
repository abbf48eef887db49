import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ManualClock } from "./manual-clock.ts";
import { SilentStorageError, StorageGate } from "./storage-gate.ts";
import { awaitImageFile, markName } from "./wanted-image.ts";

test("an image is awaited no longer when the storage of its directory falls silent", async () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-wanted-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const image = { id: "a", sha512: null };
  writeFileSync(join(dir, markName(image, "wanted")), "");
  const clock = new ManualClock();
  const gate = new StorageGate({ name: `the directory of images ${dir}`, clock, silentAfterMs: 15_000 });
  let looks = 0;
  let hangsFrom = Number.POSITIVE_INFINITY;
  const look = <Value>(call: () => Promise<Value>) =>
    gate.look(() => {
      looks += 1;
      return looks > hangsFrom ? new Promise<Value>(() => undefined) : call();
    });
  let end: unknown = null;
  awaitImageFile(dir, image, [""], { clock, look }).catch((error: unknown) => {
    end = error;
  });
  // The first two looks find the mark, and no file yet.
  await expect.poll(() => looks).toBe(2);
  await expect.poll(() => clock.pending).toBe(1);
  hangsFrom = looks;
  clock.advance(500);
  await expect.poll(() => looks).toBe(3);
  clock.advance(15_000);
  await expect.poll(() => end).toBeInstanceOf(SilentStorageError);
});
