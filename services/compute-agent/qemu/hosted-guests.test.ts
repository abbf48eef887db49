import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { StorageGate } from "../../../runtime/storage-gate.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import type { GuestName } from "../journal.ts";
import { GuestDirs } from "./guest-dirs.ts";
import { hostedGuests } from "./hosted-guests.ts";

const nameOf = (at: number, host = "h"): GuestName => ({ host, serverUuid: `s${at}`, attemptId: `t${at}/0` });

/** A directory of guests. */
async function setUp() {
  const path = mkdtempSync(join(tmpdir(), "berth-hosted-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  const dirs = new GuestDirs(path, new StorageGate({ name: path }));
  await dirs.open();
  const dirOf = (at: number) => dirs.dirOf(`t${at}/0`);
  const add = async (at: number, changes: Parameters<typeof guestRecord>[0] = {}) => {
    mkdirSync(dirOf(at));
    await writeGuestRecord(dirOf(at), guestRecord({ ...nameOf(at), hasRun: true, ...changes }));
  };
  const damaged: string[] = [];
  const onDamaged = (dir: string) => void damaged.push(basename(dir));
  const list = (known: readonly GuestName[] = []) => hostedGuests(dirs, new Set(["h"]), { known, onDamaged });
  return { dirOf, add, list, damaged };
}

test("a damaged record is told of, and hides no other guest; a directory without a record, or of another host, is no guest", async () => {
  const { dirOf, add, list, damaged } = await setUp();
  for (const at of [1, 2]) await add(at);
  await add(3, { host: "another" });
  writeFileSync(join(dirOf(2), "guest.json"), "{");
  mkdirSync(dirOf(4));
  expect(await list()).toMatchObject([nameOf(1)]);
  expect(damaged).toEqual(["guest-t2+0"]);
});

test("a record that cannot be read now leaves the answer open, unless its guest is known", async () => {
  const { dirOf, add, list } = await setUp();
  await add(1);
  mkdirSync(dirOf(2));
  symlinkSync("guest.json", join(dirOf(2), "guest.json"));
  await expect(list()).rejects.toThrow(join(dirOf(2), "guest.json"));
  expect(await list([nameOf(2)])).toMatchObject([nameOf(1)]);
});

test("a copy of a guest's directory is no guest: orders would not find it, and it says what the guest had once", async () => {
  const { dirOf, add, list, damaged } = await setUp();
  for (const at of [1, 2]) {
    await add(at);
    cpSync(dirOf(at), `${dirOf(at)}.bak`, { recursive: true });
  }
  rmSync(dirOf(2), { recursive: true });
  expect(await list()).toMatchObject([nameOf(1)]);
  expect(damaged).toEqual([]);
});
