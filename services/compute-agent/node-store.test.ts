import fs, { mkdtempSync, readlinkSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fileNodeStore } from "./node-store.ts";

test("the file of the nodes is durable under its name when it is saved", () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-nodes-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const synced: string[] = [];
  const { fsyncSync } = fs;
  fs.fsyncSync = (descriptor) => {
    synced.push(readlinkSync(`/proc/self/fd/${descriptor}`));
    fsyncSync(descriptor);
  };
  syncBuiltinESMExports();
  onTestFinished(() => {
    fs.fsyncSync = fsyncSync;
    syncBuiltinESMExports();
  });
  fileNodeStore(join(dir, "nodes.json")).save({});
  expect(synced.at(-1)).toBe(dir);
});
