import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { guestRecord } from "../../test/rigs/guest-record.ts";
import { readGuestRecord, writeGuestRecord } from "./guest-record.ts";

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

test("records that are written at the same time leave one of them, and room for the next one", async () => {
  for (let round = 0; round < 20; round += 1) {
    const records = ["a", "b", "c"].map((serverUuid) => guestRecord({ serverUuid }));
    await Promise.all(records.map((record) => writeGuestRecord(dir, record)));
    expect(records).toContainEqual(readGuestRecord(dir));
    expect(readdirSync(dir).sort()).toEqual(["guest.json", "guest.json.new"]);
  }
});

test("a record leaves room for the next one, also on a file system that compresses", async () => {
  for (let index = 0; index < 2; index += 1) {
    await writeGuestRecord(dir, guestRecord());
    expect(deflateSync(readFileSync(join(dir, "guest.json.new"))).length).toBeGreaterThanOrEqual(16_384);
  }
  expect(readGuestRecord(dir)).toEqual(guestRecord());
});
