import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readGuestRecord } from "./guest-record.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-record-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test("a directory without a record has no guest", () => {
  expect(readGuestRecord(dir)).toBeNull();
  expect(readGuestRecord(join(dir, "absent"))).toBeNull();
});

test("a record that cannot be read is not treated as absent, since an evacuation would then build new disks", () => {
  mkdirSync(join(dir, "guest.json"));
  expect(() => readGuestRecord(dir)).toThrow(/guest\.json cannot be read: EISDIR/);
});
