import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../test/rigs/eventually.ts";
import { removeGuestDir } from "./qemu-guest.ts";
import { findRunningQemu, isRunning, seenQemus } from "./running-qemu.ts";

let dir: string;
let guest: string;
let processes: ChildProcess[];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-running-qemu-"));
  guest = join(dir, "guest-a+0");
  processes = [];
});
afterEach(() => {
  for (const one of processes) one.kill("SIGKILL");
  rmSync(dir, { recursive: true, force: true });
});

/** Something that looks like a QEMU, in a guest's directory. */
async function qemuIn(cwd: string, ...args: readonly string[]): Promise<ChildProcess> {
  mkdirSync(cwd, { recursive: true });
  const child = spawn("/bin/sh", ["-c", "sleep 600; true", ...args], {
    ...{ argv0: "qemu-system-x86_64", cwd, stdio: "ignore" as const },
  });
  processes.push(child);
  await once(child, "spawn");
  return child;
}

test("a QEMU whose directory was removed is found, by its directory and among all", async () => {
  const child = await qemuIn(guest, "vfio-pci,host=0000:3b:02.0");
  for (const isRemoved of [false, true]) {
    if (isRemoved) rmSync(guest, { recursive: true });
    expect(findRunningQemu(guest)?.pid).toBe(child.pid);
    expect(findRunningQemu(guest, child.pid)?.pid).toBe(child.pid);
    expect((await seenQemus()).filter(({ pid }) => pid === child.pid)).toEqual([
      { pid: child.pid, dir: guest, commandLine: expect.stringContaining("host=0000:3b:02.0") },
    ]);
  }
  expect(findRunningQemu(join(dir, "guest-a"))).toBeNull();
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(findRunningQemu(guest)).toBeNull();
  expect((await seenQemus()).filter(({ pid }) => pid === child.pid)).toEqual([]);
});

test("a guest is not removed before each QEMU of its directory has ended, also that of a directory that was removed and made again", async () => {
  const first = await qemuIn(guest);
  rmSync(guest, { recursive: true });
  const ended = [first, await qemuIn(guest)].map((one) => once(one, "exit"));
  let runs: unknown = "not asked";
  await removeGuestDir(guest, async () => {
    runs = findRunningQemu(guest);
  });
  expect(runs).toBeNull();
  await Promise.all(ended);
});

/** Ends its first thread alone when it is told to, as the end of a process may do a while before that of its other threads. */
const ENDING = `
import ctypes, os, sys, threading
threading.Thread(target=threading.Event().wait).start()
print("ready", flush=True)
sys.stdin.readline()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
`;
const hasPython = spawnSync("/usr/bin/python3", ["-c", "import ctypes"]).status === 0;

test.skipIf(!hasPython)("a QEMU has not ended before its last thread, which has its files open", async () => {
  mkdirSync(guest);
  const child = spawn("/usr/bin/python3", ["-c", ENDING], { argv0: "qemu-system-x86_64", cwd: guest });
  processes.push(child);
  await once(child.stdout, "data");
  const qemu = findRunningQemu(guest)!;
  expect(qemu.pid).toBe(child.pid);
  child.stdin.write("end\n");
  const state = () => /^State:\s+(\S)/m.exec(readFileSync(`/proc/${qemu.pid}/status`, "utf8"))?.[1];
  await eventually("the end of the first thread", () => state() === "Z");
  expect(isRunning(qemu)).toBe(true);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(isRunning(qemu)).toBe(false);
});

/** Whether this process may mount file systems. */
const mayMount = spawnSync("unshare", ["--mount", "mount", "-t", "tmpfs", "none", tmpdir()]).status === 0;

test.skipIf(!mayMount)("a QEMU is found under which somebody has unmounted the storage of the guests", async () => {
  mkdirSync(guest, { recursive: true });
  // The copy of `sleep` looks like a QEMU. Its storage is mounted for it alone.
  const enters = 'mount -t tmpfs none "$1"; mkdir "$2"; cd "$2"; cp "$(command -v sleep)" qemu-system-x86_64';
  const script = `${enters}; umount -l "$1"; exec ./qemu-system-x86_64 600`;
  const child = spawn("unshare", ["--mount", "sh", "-ec", script, "sh", dir, guest], { stdio: "ignore" });
  processes.push(child);
  await eventually("the QEMU", () => findRunningQemu(guest)?.pid === child.pid);
  expect(findRunningQemu(join(dir, "guest-b+0"))).toBeNull();
  expect(findRunningQemu(join(dir, "another-guest-a+0"))).toBeNull();
  const ended = once(child, "exit");
  await removeGuestDir(guest);
  await ended;
});
