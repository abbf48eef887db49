import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { FunctionNotes } from "../../../adapters/qemu/function-notes.ts";
import { readGuestRecord, writeGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { GUEST_FILES } from "../../../adapters/qemu/virtual-machine.ts";
import { bootId } from "../../../runtime/boot-id.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { SettingsError } from "../../../runtime/settings.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { lookAtQemusBelow } from "../../../test/rigs/look-at-qemus-below.ts";
import { makeSysroot, sriovCard } from "../../../test/rigs/made-up-sysroot.ts";
import { NANO_DEFAULTS } from "../../../test/rigs/qemu-guests.ts";
import type { GuestName } from "../journal.ts";
import { openQemuDriver } from "./open-qemu-driver.ts";
import { QemuDriver } from "./qemu-driver.ts";
import type { QemuDriverOptions } from "./qemu-driver-options.ts";

let dir: string;
let driver: QemuDriver | null = null;
const clock = new ManualClock();
const processes: ChildProcess[] = [];
const servers: Server[] = [];
let unknown: string[] = [];

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-driver-")));
  unknown = [];
});
afterEach(() => {
  driver?.close();
  for (const child of processes.splice(0)) child.kill("SIGKILL");
  for (const server of servers.splice(0)) server.close();
  rmSync(dir, { recursive: true, force: true });
});

function opened(options: Partial<QemuDriverOptions> = {}): QemuDriver {
  driver = new QemuDriver({
    ...{ clock, program: "qemu-system-x86_64", instancesPath: dir, imagesPath: dir, imageCache: join(dir, "_base") },
    ...{
      transferHost: "127.0.0.1",
      hasSecretTransfers: true,
      hasDisplays: false,
      userNetwork: "isolated",
      sysroot: "/",
      shutdownMs: 1_000,
      pressAgainMs: 1_000,
    },
    lookAtQemus: lookAtQemusBelow(dir),
    // The clock goes on by minutes while a file is being read.
    silentAfterMs: Number.MAX_SAFE_INTEGER,
    onUnknown: ({ attemptId }) => unknown.push(attemptId),
    defaults: () => Promise.reject(new Error("no guest is built here")),
    ...options,
  });
  return driver;
}

const nameOf = (index: number): GuestName => ({ host: "h", serverUuid: "s", attemptId: `t${index}/0` });
const dirOf = (index: number): string => join(dir, `guest-t${index}+0`);

/** A guest that was told to run, and whose QEMU has gone unless the test starts one. */
async function runningGuest(index: number): Promise<GuestName> {
  mkdirSync(dirOf(index));
  await writeGuestRecord(dirOf(index), guestRecord({ ...nameOf(index), hasRun: true, runningIn: bootId() }));
  return nameOf(index);
}

test("at its start the agent tells of guests whose dedicated CPUs are no longer in the set", async () => {
  const name = nameOf(1);
  mkdirSync(dirOf(1));
  const memory = [{ memoryMib: 16, hostNode: 0 }];
  const pinning = { vcpus: [[3]], held: [3], emulator: [3], memory, isBound: false, pageKib: null };
  await writeGuestRecord(dirOf(1), guestRecord({ ...name, pinning }));
  const strays: unknown[] = [];
  const places = [{ provider: "n", node: 0, dedicated: [1], shared: [0, 3], pagesKib: [] }];
  const one = opened({ layoutOf: () => ({ places, cores: [] }), onStrayCpus: (guest) => strays.push(guest) });
  await one.adopt([{ ...name, state: "stopped" }]);
  expect(strays).toEqual([{ host: "h", serverUuid: "s", held: [3] }]);
});

test("guests of one server that are destroyed together remove the mediated device that they share", async () => {
  const uuid = "6f1f2ad0-7d3c-4d0b-8f0e-0c9b6a8c0001";
  const remove = `/sys/bus/mdev/devices/${uuid}/remove`;
  const sysroot = makeSysroot({ [remove]: "" });
  const devices = [{ kind: "mdev" as const, uuid, parent: "0000:41:00.0", type: "nvidia-35" }];
  const pinning = { vcpus: [], held: [], emulator: [], memory: [], isBound: false, pageKib: null, devices };
  const names = [nameOf(1), nameOf(2), nameOf(3)];
  for (const index of [1, 2, 3]) {
    mkdirSync(dirOf(index));
    await writeGuestRecord(dirOf(index), guestRecord({ ...nameOf(index), pinning }));
  }
  const one = opened({ sysroot });
  await one.destroy(names[0]!);
  expect(readFileSync(join(sysroot, remove), "utf8")).toBe("");
  await Promise.all(names.map((name) => one.destroy(name)));
  expect(readFileSync(join(sysroot, remove), "utf8")).toBe("1");
});

/** A process that looks like the guest's QEMU and does nothing. */
async function startDeafQemu(index: number): Promise<void> {
  const child = spawn("/bin/sleep", ["60"], { argv0: "qemu-system-x86_64", cwd: dirOf(index), stdio: "ignore" });
  processes.push(child);
  await new Promise((resolve) => child.once("spawn", resolve));
  writeFileSync(join(dirOf(index), GUEST_FILES.processId), String(child.pid));
}

test("a guest whose record is damaged is unknown, and hides no other guest", async () => {
  const guests = [await runningGuest(1), await runningGuest(2)];
  writeFileSync(join(dirOf(1), "guest.json"), "{");
  await opened().adopt(guests.map((guest) => ({ ...guest, state: "running" })));
  expect(await driver?.powersOf(guests)).toEqual(["unknown", "crashed"]);
  expect(unknown).toEqual(["t1/0", "t1/0"]);
});

test("a guest whose QEMU does not answer is unknown, and hides no other guest", async () => {
  const guests = [await runningGuest(1), await runningGuest(2)];
  await startDeafQemu(1);
  const connected = new Promise((resolve) => servers.push(createServer(resolve).listen(join(dirOf(1), "qmp"))));
  const looked = opened().powersOf(guests);
  await connected;
  clock.advance(4_000);
  expect(await looked).toEqual(["unknown", "crashed"]);
});

test("a guest whose QEMU runs and takes no connections is unknown, since it may be about to end or has just begun", async () => {
  const guest = await runningGuest(1);
  await startDeafQemu(1);
  expect(await opened().powersOf([guest])).toEqual(["unknown"]);
});

/** Settings of a host whose QEMU can only print its version. */
function settingsFor(instancesPath: string): Parameters<typeof openQemuDriver>[0] {
  const qemu = join(dir, "qemu");
  writeFileSync(qemu, "#!/bin/sh\necho QEMU emulator version 7.2.0\n");
  chmodSync(qemu, 0o755);
  return {
    ...{
      qemu,
      sysroot: null,
      instancesPath,
      imagesPath: dir,
      imageCache: null,
      volumeDir: null,
      volumeMounts: null,
      accel: "tcg",
      cpuModel: null,
      cpuModels: null,
      cpuModelExtraFlags: null,
    },
    ...{
      machineType: "pc-q35-7.2",
      liveMigrationInboundAddr: "127.0.0.1",
      liveMigrationWithNativeTls: true,
      liveMigrationBandwidth: 0,
    },
    ...{
      shutdownTimeout: 1_000,
      bridge: null,
      vncEnabled: false,
      userNetwork: "isolated" as const,
      videoModel: "vga" as const,
    },
  };
}
const surroundings = { clock: systemClock, logger: pino({ level: "silent" }) };

function openWith(instancesPath: string): QemuDriver {
  const made = openQemuDriver(settingsFor(instancesPath), surroundings);
  onTestFinished(made.close);
  driver = made.driver;
  return made.driver;
}

test("finds the QEMU of a guest also when the instances path is a symbolic link", async () => {
  const guest = await runningGuest(1);
  await startDeafQemu(1);
  const link = `${dir}-link`;
  symlinkSync(dir, link);
  try {
    const found = openWith(link);
    // A QEMU that is not found would have crashed.
    expect(await found.powersOf([guest])).toEqual(["unknown"]);
  } finally {
    rmSync(link);
  }
});

test("an instances path that cannot be used is an error of the settings", async () => {
  writeFileSync(join(dir, "file"), "");
  const made = openQemuDriver(settingsFor(join(dir, "file", "instances")), surroundings);
  onTestFinished(made.close);
  const ready = made.ready();
  await expect(ready).rejects.toThrow(SettingsError);
  await expect(ready).rejects.toThrow(/BERTH_INSTANCES_PATH \(--instances-path\) cannot be used: ENOTDIR/);
});

test("an instances path that does not exist yet is made", async () => {
  const made = openQemuDriver(settingsFor(join(dir, "new", "instances")), surroundings);
  onTestFinished(made.close);
  await made.ready();
  expect(realpathSync(join(dir, "new", "instances")).endsWith("instances")).toBe(true);
});

test("two ports with one MAC address are two interfaces, and the one that is taken away leaves the other", async () => {
  const guest = await runningGuest(1);
  const [one, other] = [1, 2].map((slot) => ({ portId: `p${slot}`, macAddress: "fa:16:3e:00:00:01", slot }));
  if (one === undefined || other === undefined) throw new Error("there are two ports");
  const never = new AbortController().signal;
  const made = opened({ defaults: async () => NANO_DEFAULTS });
  const names = () => readGuestRecord(dirOf(1))?.machine.interfaces.map(({ portId, slot, id }) => [portId, slot, id]);
  await made.setInterfaces(guest, [one, other], never);
  expect(names()).toEqual([
    ["p1", 1, "net-p1"],
    ["p2", 2, "net-p2"],
  ]);
  await made.setInterfaces(guest, [other], never);
  expect(names()).toEqual([["p2", 2, "net-p2"]]);
});

test("an interface that an earlier version has given a guest is known by its MAC address", async () => {
  const name = nameOf(1);
  mkdirSync(dirOf(1));
  const mac = "fa:16:3e:00:00:01";
  const record = guestRecord(name);
  const interfaces = [{ mac, bridge: null, slot: 1, id: "net-fa163e000001" }];
  await writeGuestRecord(dirOf(1), { ...record, machine: { ...record.machine, interfaces } });
  const made = opened({ defaults: async () => NANO_DEFAULTS });
  await made.setInterfaces(name, [{ portId: "p1", macAddress: mac, slot: 1 }], new AbortController().signal);
  expect(readGuestRecord(dirOf(1))?.machine.interfaces).toEqual(interfaces);
});

test("a guest that is to be handed over with its memory is kept if the destination's guest takes nothing", async () => {
  const [guest] = [await runningGuest(1), await startDeafQemu(1)];
  const order = {
    ...guest,
    toHost: "h2",
    toAttemptId: "t2/0",
    listensAt: "qemu://nothing",
    force: false,
    orderId: "o",
  };
  const handing = opened().handOff({ ...order, live: true }, new AbortController().signal, () => undefined);
  await expect(handing).rejects.toThrow(/host h2 .* update that host's agent/);
  expect(readGuestRecord(dirOf(1))?.handedTo).toBeNull();
  expect(processes.at(-1)?.exitCode).toBeNull();
});

describe("virtual functions that network cards were told of", () => {
  const PORT = { portId: "p", mac: "fa:16:3e:00:00:01" };
  const VFS = ["0000:3b:02.0", "0000:3b:02.1"] as const;
  const CLEARED = "ip link set dev ens1f0 vf 0 mac 00:00:00:00:00:00 vlan 0";
  let ran: string[];
  let refused: boolean;
  beforeEach(() => {
    ran = [];
    refused = false;
  });
  const runProgram = async (program: string, args: readonly string[]) => {
    ran.push([program, ...args].join(" "));
    if (refused) throw new Error("Device or resource busy");
  };
  const functionNotes = () => join(dir, "functions.json");
  /** What an earlier process of the agent has noted for guests of these numbers, each of which has one function. */
  function noted(...indexes: readonly number[]): FunctionNotes {
    const notes = new FunctionNotes({ path: functionNotes(), boot: bootId() });
    for (const [at, index] of indexes.entries()) notes.put(VFS[at]!, { dir: dirOf(index), ...PORT });
    return notes;
  }
  const openedWith = (options: Partial<QemuDriverOptions> = {}) =>
    opened({ sysroot: makeSysroot(sriovCard()), functionNotes: functionNotes(), runProgram, ...options });

  test("are cleared when a guest is destroyed whose record is damaged, which is kept if a card does not clear them", async () => {
    const guest = await runningGuest(1);
    writeFileSync(join(dirOf(1), "guest.json"), "{");
    noted(1);
    const one = openedWith();
    refused = true;
    await expect(one.destroy(guest)).rejects.toThrow(/virtual function 0 of ens1f0 .* keeps the MAC address/);
    expect(existsSync(dirOf(1))).toBe(true);
    refused = false;
    ran = [];
    await one.destroy(guest);
    expect(ran[0]).toBe(CLEARED);
    expect(existsSync(dirOf(1))).toBe(false);
    expect(new FunctionNotes({ path: functionNotes(), boot: bootId() }).all().size).toBe(0);
  });

  test("and mediated devices are kept with the files of a guest whose record cannot be read now, and released when it can", async () => {
    const uuid = "6f1f2ad0-7d3c-4d0b-8f0e-0c9b6a8c0002";
    const remove = `/sys/bus/mdev/devices/${uuid}/remove`;
    const sysroot = makeSysroot({ ...sriovCard(), [remove]: "" });
    const guest = await runningGuest(1);
    const devices = [{ kind: "mdev" as const, uuid, parent: "0000:41:00.0", type: "nvidia-35" }];
    const pinning = { vcpus: [], held: [], emulator: [], memory: [], isBound: false, pageKib: null, devices };
    await writeGuestRecord(dirOf(1), guestRecord({ ...guest, pinning }));
    const [record, aside] = [join(dirOf(1), "guest.json"), join(dirOf(1), "aside")];
    renameSync(record, aside);
    symlinkSync("guest.json", record);
    noted(1);
    const one = openedWith({ sysroot });
    await expect(one.destroy(guest)).rejects.toThrow(/guest\.json cannot be read: ELOOP/);
    expect([ran, existsSync(aside), readFileSync(join(sysroot, remove), "utf8")]).toEqual([[], true, ""]);
    renameSync(aside, record);
    await one.destroy(guest);
    expect([ran[0], existsSync(dirOf(1)), readFileSync(join(sysroot, remove), "utf8")]).toEqual([CLEARED, false, "1"]);
  });

  test("are cleared by the next process if their guests do not run, and tried again each minute while a card keeps them", async () => {
    const other = await runningGuest(2);
    const devices = [{ kind: "pci" as const, address: VFS[1] }];
    const pinning = { vcpus: [], held: [], emulator: [], memory: [], isBound: false, pageKib: null, devices };
    await writeGuestRecord(dirOf(2), guestRecord({ ...other, pinning }));
    await startDeafQemu(2);
    noted(1, 2);
    const kept: unknown[] = [];
    refused = true;
    const one = openedWith({ onFunctionsKept: (guest) => kept.push(guest) });
    await one.adopt([]);
    clock.advance(0);
    await eventually("the first attempt", () => kept.length > 0);
    /** The next attempt is due a minute after the last one has ended. */
    const afterMinutes = (what: string, isSo: () => boolean) =>
      eventually(what, () => {
        clock.advance(60_000);
        return isSo();
      });
    await afterMinutes("the next attempts", () => ran.filter((line) => line === CLEARED).length >= 3);
    refused = false;
    const left = () => [...new FunctionNotes({ path: functionNotes(), boot: bootId() }).all().keys()];
    await afterMinutes("the function to be cleared", () => left().length === 1);
    // The other one belongs to a QEMU that runs.
    expect(left()).toEqual([VFS[1]]);
    expect(ran.filter((line) => line.includes("vf 1"))).toEqual([]);
    // The operator is told once.
    expect(kept).toEqual([{ dir: dirOf(1) }]);
  });
});
