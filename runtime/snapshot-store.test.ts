import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { SnapshotStore } from "./snapshot-store.ts";
import { StorageGate } from "./storage-gate.ts";

const NEVER = new AbortController().signal;

/** A directory of images with a complete file, to which one call is made at a time. */
async function storeWithPart() {
  const dir = mkdtempSync(join(tmpdir(), "berth-images-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const storage = new StorageGate({ name: dir, callsMax: 1 });
  onTestFinished(() => storage.close());
  const store = new SnapshotStore(dir, ".qcow2", storage);
  const part = await store.nameFor("one");
  writeFileSync(part, "an image");
  return { dir, storage, store, part };
}

test("gives a complete file the image's name", async () => {
  const { dir, store, part } = await storeWithPart();
  await store.publish(part, "one", NEVER);
  expect(readdirSync(dir)).toEqual(["one.qcow2"]);
  expect(await store.has("one")).toBe(true);
});

test("does not wait for a storage that does not answer when it is called off, and makes no image when the storage answers", async () => {
  const { dir, storage, store, part } = await storeWithPart();
  const { promise: hangs, resolve: answer } = Promise.withResolvers<void>();
  const hanging = storage.work(() => hangs);
  const control = new AbortController();
  const published = store.publish(part, "one", control.signal);
  control.abort(new Error("the guest is to be stopped"));
  await expect(published).rejects.toThrow("the guest is to be stopped");
  answer();
  await hanging;
  // Calls are made in their order, so this one comes after the one that was called off.
  expect(await store.has("one")).toBe(false);
  await store.discardAll("one");
  expect(readdirSync(dir)).toEqual([]);
});

test("makes no image after it was called off", async () => {
  const { dir, store, part } = await storeWithPart();
  const calledOff = store.publish(part, "one", AbortSignal.abort(new Error("called off before")));
  await expect(calledOff).rejects.toThrow("called off before");
  await store.discard(part);
  expect(readdirSync(dir)).toEqual([]);
});
