import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, realpathSync, rmSync, writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { bootId } from "../../../runtime/boot-id.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { NANO_DEFAULTS } from "../../../test/rigs/qemu-guests.ts";
import type { GuestName } from "../journal.ts";
import { QemuDriver } from "./qemu-driver.ts";

const SILENT_AFTER_MS = 15_000;
let dir: string;
let clock: ManualClock;
let driver: QemuDriver;
let told: (string | null)[];
let hanging: Map<string, string>;

beforeEach(async () => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-silent-")));
  clock = new ManualClock();
  told = [];
  hanging = new Map();
  driver = new QemuDriver({
    ...{ clock, program: "qemu-system-x86_64", instancesPath: dir, imagesPath: dir, imageCache: join(dir, "_base") },
    ...{ transferHost: "127.0.0.1", hasSecretTransfers: true, hasDisplays: false, userNetwork: "isolated" },
    ...{ sysroot: "/", shutdownMs: 1_000, pressAgainMs: 1_000, silentAfterMs: SILENT_AFTER_MS },
    onStorage: (_, silence) => told.push(silence),
    defaults: async () => NANO_DEFAULTS,
  });
  await driver.open();
});
afterEach(() => {
  for (const path of [...hanging.keys()]) answer(path);
  driver.close();
  rmSync(dir, { recursive: true, force: true });
});

const nameOf = (index: number): GuestName => ({ host: "h", serverUuid: "s", attemptId: `t${index}/0` });
const dirOf = (index: number): string => join(dir, `guest-t${index}+0`);
const recordOf = (index: number) => join(dirOf(index), "guest.json");

/** A guest that was told to run, and whose QEMU is gone. */
async function guest(index: number): Promise<GuestName> {
  mkdirSync(dirOf(index));
  await writeGuestRecord(dirOf(index), guestRecord({ ...nameOf(index), hasRun: true, runningIn: bootId() }));
  return nameOf(index);
}

/** Lets the reading of a file hang: a pipe is opened only when somebody writes to it. */
async function hang(path: string): Promise<void> {
  hanging.set(path, await readFile(path, "utf8"));
  rmSync(path);
  execFileSync("mkfifo", [path]);
}

/** Answers the one reading that hangs. */
function answer(path: string): void {
  const pipe = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  writeSync(pipe, hanging.get(path) ?? "");
  closeSync(pipe);
  hanging.delete(path);
}

const order = {
  ...nameOf(9),
  ...{ server: { volumes: [] }, movedFrom: null, allocation: undefined },
} as unknown as Parameters<QemuDriver["prepare"]>[0];
const control = { signal: new AbortController().signal, onStep: () => undefined };

test("a guest whose directory hangs is unknown and hides no other guest, the host is closed meanwhile, and then the guest is found", async () => {
  const guests = [await guest(1), await guest(2)];
  await hang(recordOf(1));
  expect(await driver.powersOf(guests.slice(1))).toEqual(["crashed"]);
  const looked = driver.powersOf(guests);
  // The other one is known, and is found without its files.
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(4_000);
  expect(await looked).toEqual(["unknown", "crashed"]);
  expect(driver.closedBecause).toBeNull();
  let changes = 0;
  driver.watchStorage(() => {
    changes += 1;
  });
  const log = driver.readConsole(nameOf(1), 100);
  log.catch(() => undefined);
  clock.advance(SILENT_AFTER_MS);
  const reason = expect.stringContaining(`the directory of guests ${dir} has not answered for 15 s or longer`);
  expect([told, changes, driver.closedBecause]).toEqual([[reason], 1, reason]);
  // What waited for the storage without need is refused, and so is what comes now. Nothing is made of a new guest.
  await expect(log).rejects.toThrow("has not answered");
  await expect(driver.start(nameOf(1), control.signal)).rejects.toThrow("has not answered");
  expect(await driver.prepare(order, control)).toEqual({ kind: "failed", failure: "reschedule", reason });
  await expect(driver.destroy(nameOf(2))).rejects.toThrow("has not answered");
  // A guest that was known before is looked at without its directory.
  expect(await driver.powersOf(guests)).toEqual(["unknown", "crashed"]);
  answer(recordOf(1));
  await expect.poll(() => driver.closedBecause).toBeNull();
  expect([told.length, changes]).toEqual([2, 2]);
  await writeGuestRecordOver(1);
  expect(await driver.powersOf(guests)).toEqual(["crashed", "crashed"]);
  await driver.destroy(nameOf(2));
});

test("an agent that starts while the directory hangs adopts what it can read, keeps its heartbeats waiting for moments only, and ends the old work on the others before their next orders", async () => {
  const guests = [await guest(1), await guest(2)];
  await hang(recordOf(1));
  const adopted = driver.adopt(guests.map((name) => ({ ...name, state: "running" })));
  await expect.poll(() => driver.pinningOf(nameOf(2))).toBeNull();
  clock.advance(3_000);
  await adopted;
  // It may have CPUs of its own, which nobody must call free.
  expect(() => driver.pinningOf(nameOf(1))).toThrow("could not be read yet");
  clock.advance(SILENT_AFTER_MS);
  await expect.poll(() => driver.closedBecause).toContain("has not answered");
  answer(recordOf(1));
  await expect.poll(() => driver.closedBecause).toBeNull();
  await writeGuestRecordOver(1);
  // A copy that the last process began is ended before anything else is done.
  await driver.power(nameOf(1), "stop", control.signal);
  expect(driver.pinningOf(nameOf(1))).toBeNull();
  expect(JSON.parse(await readFile(recordOf(1), "utf8"))).toMatchObject({ runningIn: null });
});

/** The pipe becomes a file again, as it was before. */
async function writeGuestRecordOver(index: number): Promise<void> {
  rmSync(recordOf(index));
  await writeGuestRecord(dirOf(index), guestRecord({ ...nameOf(index), hasRun: true, runningIn: bootId() }));
}
