import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ManualClock } from "./manual-clock.ts";
import { SilentStorageError, StorageGate } from "./storage-gate.ts";
import { awaitImageFile, markName } from "./wanted-image.ts";

/** A busy machine takes its time to look at a file. */
const PATIENT = { timeout: 30_000 };

test("an image is awaited no longer when the storage of its directory falls silent", async () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-wanted-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const image = { id: "a", sha512: null };
  writeFileSync(join(dir, markName(image, "wanted")), "");
  const clock = new ManualClock();
  const gate = new StorageGate({ name: `the directory of images ${dir}`, clock, silentAfterMs: 15_000 });
  let looks = 0;
  let ended = 0;
  let hangsFrom = Number.POSITIVE_INFINITY;
  const look = <Value>(call: () => Promise<Value>) =>
    gate
      .look(() => {
        looks += 1;
        return looks > hangsFrom ? new Promise<Value>(() => undefined) : call();
      })
      .finally(() => {
        ended += 1;
      });
  let end: unknown = null;
  awaitImageFile(dir, image, [""], { clock, look }).catch((error: unknown) => {
    end = error;
  });
  // The first two looks find the mark, and no file yet.
  await expect.poll(() => ended, PATIENT).toBe(2);
  await expect.poll(() => clock.pending, PATIENT).toBe(1);
  hangsFrom = looks;
  clock.advance(500);
  await expect.poll(() => looks, PATIENT).toBe(3);
  clock.advance(15_000);
  await expect.poll(() => end, PATIENT).toBeInstanceOf(SilentStorageError);
});

describe("the reason for which nobody can use an image", () => {
  const image = { id: "a", sha512: null };
  let dir: string;
  let mark: string;
  beforeEach(() => {
    const root = mkdtempSync(join(tmpdir(), "berth-refused-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    dir = join(root, "images");
    mkdirSync(dir);
    mark = join(dir, markName(image, "refused"));
  });
  const reason = () => awaitImageFile(dir, image, [""]).catch((error: unknown) => error as Error);

  test("is told as it is written", async () => {
    writeFileSync(mark, "the bits have another hash");
    expect(await reason()).toMatchObject({
      code: "refused",
      message: "the data of image a cannot be used: the bits have another hash",
    });
  });

  test("is not the content of a file of this machine to which another host has made a symbolic link", async () => {
    const secret = join(dir, "..", "agent.key");
    writeFileSync(secret, "a private key");
    symlinkSync(secret, mark);
    const { message } = (await reason()) as Error;
    expect(message).not.toContain("a private key");
    expect(message).toContain(".a.refused is a symbolic link");
  });

  test("is not read if it is longer than any reason, or no regular file", async () => {
    writeFileSync(mark, "");
    truncateSync(mark, 1 << 30);
    expect(await reason()).toMatchObject({ message: expect.stringContaining("it is longer than 4096 bytes") });
    rmSync(mark);
    mkdirSync(mark);
    expect(await reason()).toMatchObject({ message: expect.stringContaining("is no regular file") });
  });
});
