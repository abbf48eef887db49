import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { readGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { SnapshotStore } from "../../../runtime/snapshot-store.ts";
import { StorageGate } from "../../../runtime/storage-gate.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { CalledOffMoves } from "./called-off-moves.ts";
import type { KnownGuests } from "./known-guests.ts";
import { OldWork } from "./old-work.ts";

const NAME = { host: "h", serverUuid: "s", attemptId: "t1/0" };
const FEW = 4;
let clock: ManualClock;
let images: StorageGate;
let guest: QemuGuest;
let work: OldWork;
let unknown: unknown[];

beforeEach(async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-old-work-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  clock = new ManualClock();
  images = new StorageGate({ name: "images", clock, callsMax: FEW, silentAfterMs: 1_000 });
  guest = await QemuGuest.create(dir, guestRecord({ ...NAME, hasRun: true, copiesTo: join(dir, "x.part") }));
  unknown = [];
  const guests = { findLeft: async () => guest, existing: async () => guest, isUnread: () => false };
  work = new OldWork({
    guests: guests as unknown as KnownGuests,
    snapshots: new SnapshotStore(dir, ".qcow2", images),
    calledOff: new CalledOffMoves(clock, async () => undefined),
    onUnknown: (_, error) => unknown.push(error),
    onInterfacesLeft: (_, error) => unknown.push(error),
  });
});

/** Lets all calls to the directory of images hang. */
function hang(): () => void {
  const calls = Array.from({ length: FEW }, () => Promise.withResolvers<void>());
  for (const { promise } of calls) images.work(() => promise);
  return () => {
    for (const { resolve } of calls) resolve();
  };
}

test("an order waits for the end of the old work that the agent waits for no longer, instead of ending it beside that", async () => {
  const answer = hang();
  let isAtRest = false;
  const ended = work.endOfLastProcess(NAME);
  const ordered = work.atRest(NAME).then(() => {
    isAtRest = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isAtRest).toBe(false);
  answer();
  await Promise.all([ended, ordered]);
  expect(unknown).toEqual([]);
  expect(guest.record.copiesTo).toBeUndefined();
  expect(readGuestRecord(guest.dir)).toEqual(guest.record);
});

test("the orders of a guest with an old copy do not wait for a storage of images that is silent, and the copy is removed when it answers", async () => {
  const answer = hang();
  const ordered = work.atRest(NAME);
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(1_000);
  expect(await ordered).toBe(guest);
  expect(await work.atRest(NAME)).toBe(guest);
  expect(guest.record.copiesTo).toBeDefined();
  answer();
  await expect.poll(() => images.silence).toBeNull();
  await work.atRest(NAME);
  expect(guest.record.copiesTo).toBeUndefined();
});
