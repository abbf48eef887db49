import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openFiles } from "../test/rigs/open-files.ts";
import { ManualClock } from "./manual-clock.ts";
import { SnapshotStore } from "./snapshot-store.ts";
import { SilentStorageError, StorageGate } from "./storage-gate.ts";

const NEVER = new AbortController().signal;

let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
});

/** A directory of images with a complete file, to which one call is made at a time. */
async function storeWithPart() {
  const dir = mkdtempSync(join(tmpdir(), "berth-images-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const storage = new StorageGate({ name: dir, callsMax: 1, clock, silentAfterMs: 15_000 });
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

describe("the file of an image that is being written", () => {
  const BEGINNING = Buffer.from("the beginning");

  test("is the same for the one who writes it, whatever another host puts in its place", async () => {
    const { dir, store } = await storeWithPart();
    const part = await store.nameFor("two");
    const victim = join(dir, "victim");
    writeFileSync(victim, "secret");
    await store.withFile(part, BEGINNING, async (path) => {
      expect(readFileSync(part, "utf8")).toBe("the beginning");
      rmSync(part);
      symlinkSync(victim, part);
      appendFileSync(path, ", and the end");
      expect(readFileSync(path, "utf8")).toBe("the beginning, and the end");
    });
    expect(readFileSync(victim, "utf8")).toBe("secret");
    await expect(store.publish(part, "two", NEVER)).rejects.toThrow("is a symbolic link");
    expect(await store.has("two")).toBe(false);
  });

  test("is not made through a link that has its name already", async () => {
    const { dir, store } = await storeWithPart();
    const part = await store.nameFor("two");
    symlinkSync(join(dir, "victim"), part);
    await expect(store.withFile(part, BEGINNING, async () => undefined)).rejects.toMatchObject({ code: "EEXIST" });
    expect(readdirSync(dir)).not.toContain("victim");
  });

  test("is closed when a storage answers again that was silent at the end", async () => {
    const { storage, store } = await storeWithPart();
    const part = await store.nameFor("two");
    const isOpen = () => openFiles().includes(part);
    const { promise: hangs, resolve: answer } = Promise.withResolvers<void>();
    let hanging: Promise<void> | undefined;
    const used = store.withFile(part, BEGINNING, async () => {
      hanging = storage.work(() => hangs);
      clock.advance(15_000);
      throw new Error("the copying broke off");
    });
    await expect(used).rejects.toThrow("the copying broke off");
    expect(isOpen()).toBe(true);
    answer();
    await hanging;
    await expect.poll(isOpen).toBe(false);
  });

  test("is not awaited from a storage that has fallen silent", async () => {
    const { storage, store } = await storeWithPart();
    const { promise: hangs, resolve: answer } = Promise.withResolvers<void>();
    const part = await store.nameFor("two");
    const hanging = storage.work(() => hangs);
    let wasUsed = false;
    const made = store.withFile(part, BEGINNING, async () => {
      wasUsed = true;
    });
    clock.advance(15_000);
    await expect(made).rejects.toBeInstanceOf(SilentStorageError);
    answer();
    await hanging;
    await store.discard(part);
    expect(wasUsed).toBe(false);
  });
});
