import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { SilentStorageError, StorageGate } from "../../runtime/storage-gate.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { guestRecord } from "../../test/rigs/guest-record.ts";
import { openFiles } from "../../test/rigs/open-files.ts";
import { readGuestRecord } from "./guest-record.ts";
import { lastError, QemuGuest } from "./qemu-guest.ts";
import { GUEST_FILES } from "./virtual-machine.ts";

test("a QEMU whose monitor cannot be used is ended, instead of running on for a guest that was never built", async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-guest-")));
  const program = join(dir, "qemu");
  writeFileSync(program, "#!/bin/bash\nexec -a qemu-system-x86_64 sleep 60\n");
  chmodSync(program, 0o755);
  const server = createServer((socket) => socket.end("this is no monitor\r\n"));
  try {
    const guest = await QemuGuest.create(dir, guestRecord());
    const booted = guest.boot(program, { isReceiving: false, hasDevices: true });
    booted.catch(() => undefined);
    // Before that, the files of an earlier QEMU are removed.
    await eventually("the process", () => guest.process() !== null);
    server.listen(join(dir, GUEST_FILES.monitor));
    await expect(booted).rejects.toThrow();
    await eventually("the end of the process", () => guest.process() === null);
  } finally {
    server.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

test("a QEMU that the system cannot start, since its command is too long, leaves no file open, which would end this process", async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-guest-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const { machine } = guestRecord();
  const kernel = { path: "/k", ramdisk: null, commandLine: "x".repeat(200_000) };
  const guest = await QemuGuest.create(dir, guestRecord({ machine: { ...machine, kernel } }));
  const booted = guest.boot("/bin/false", { isReceiving: false, hasDevices: true });
  await expect(booted).rejects.toMatchObject({ name: "QemuError", message: expect.stringContaining("E2BIG") });
  expect(openFiles().filter((path) => path.startsWith(dir))).toEqual([]);
});

test("the first change of a record removes what a process left that was killed in the middle of one, and leaves room for the next one again", async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-guest-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  await QemuGuest.create(dir, guestRecord());
  // It is killed when the spare file bears the name of its write, which the storage may still carry out.
  const unfinished = join(dir, `guest.json.${randomUUID()}.new`);
  renameSync(join(dir, "guest.json.new"), unfinished);
  const late = openSync(unfinished, "w");
  onTestFinished(() => closeSync(late));
  const guest = await QemuGuest.load(dir);
  await guest?.change({ listensAt: "here" });
  writeSync(late, "the late write");
  expect(readdirSync(dir).sort()).toEqual(["guest.json", "guest.json.new"]);
  expect([readGuestRecord(dir), readFileSync(join(dir, "guest.json.new")).length]).toEqual([guest?.record, 16_384]);
  await guest?.change({ listensAt: "there" });
  expect(readGuestRecord(dir)?.listensAt).toBe("there");
});

test("a record whose change has failed is unsure until a later change succeeds", async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-guest-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const guest = await QemuGuest.create(dir, guestRecord());
  expect(guest.isRecordUnsure).toBe(false);
  rmSync(join(dir, "guest.json"));
  // No file can take the place of a directory.
  mkdirSync(join(dir, "guest.json"));
  await expect(guest.change({ isSuspended: true })).rejects.toThrow();
  expect([guest.isRecordUnsure, guest.record.isSuspended]).toEqual([true, false]);
  rmdirSync(join(dir, "guest.json"));
  await guest.change({ listensAt: "here" });
  expect([guest.isRecordUnsure, readGuestRecord(dir)]).toEqual([false, { ...guestRecord(), listensAt: "here" }]);
});

describe("a guest whose storage hangs", () => {
  let dir: string;
  let clock: ManualClock;
  let storage: StorageGate;
  const hung = Promise.withResolvers<void>();
  beforeEach(() => {
    dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-guest-")));
    clock = new ManualClock();
    storage = new StorageGate({ name: dir, clock, silentAfterMs: 1_000 });
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  });
  function fallSilent(): void {
    storage.work(() => hung.promise);
    clock.advance(1_000);
    expect(storage.silence).not.toBeNull();
  }

  test("has all changes that waited for it, in a record that can be read", async () => {
    const guest = await QemuGuest.create(dir, guestRecord(), undefined, storage);
    const changes = [
      guest.change({ copiesTo: "part" }),
      guest.change({ isSuspended: true }),
      guest.change({ listensAt: "here" }),
    ];
    await Promise.all(changes);
    expect(readGuestRecord(dir)).toEqual({ ...guestRecord(), copiesTo: "part", isSuspended: true, listensAt: "here" });
    expect(guest.record).toEqual(readGuestRecord(dir));
  });

  test("keeps its QEMU, which cannot be asked to end", async () => {
    const guest = await QemuGuest.create(dir, guestRecord(), undefined, storage);
    const child = spawn("/bin/sleep", ["60"], { argv0: "qemu-system-x86_64", cwd: dir, stdio: "ignore" });
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child, "spawn");
    writeFileSync(join(dir, GUEST_FILES.processId), String(child.pid));
    expect(guest.process()?.pid).toBe(child.pid);
    fallSilent();
    await expect(guest.end()).rejects.toThrow(SilentStorageError);
    expect(guest.process()?.pid).toBe(child.pid);
    expect(child.killed || child.exitCode !== null || child.signalCode !== null).toBe(false);
  });

  test("is not started for an order that was given up meanwhile", async () => {
    const guest = await QemuGuest.create(dir, guestRecord(), undefined, storage);
    const given = new AbortController();
    const full = Array.from({ length: 8 }, () => Promise.withResolvers<void>());
    for (const { promise } of full) storage.work(() => promise);
    const signal = given.signal;
    const booted = guest.boot("/bin/false", { isReceiving: false, hasDevices: true, signal });
    given.abort(new Error("the order was given up"));
    for (const { resolve } of full) resolve();
    await expect(booted).rejects.toThrow("the order was given up");
  });
});

test.each([
  ["", null],
  ["Killed\n", "Killed"],
  [
    'qemu-system-x86_64: warning: TCG\nqemu-system-x86_64: -device virtio-blk-pci: Failed to get "write" lock\nIs another process using the image [disk0.qcow2]?\n',
    'qemu-system-x86_64: -device virtio-blk-pci: Failed to get "write" lock Is another process using the image [disk0.qcow2]?',
  ],
])("the last error in %j is %j", (output, error) => {
  expect(lastError(output)).toBe(error);
});
