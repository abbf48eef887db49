import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readGuestRecord } from "../../adapters/qemu/guest-record.ts";
import { NANO_IMAGE_ID, nanoImage } from "../../adapters/qemu/nano-image.ts";
import { removeGuestDir } from "../../adapters/qemu/qemu-guest.ts";
import { QmpClient } from "../../adapters/qemu/qmp-client.ts";
import { findRunningQemu } from "../../adapters/qemu/running-qemu.ts";
import { GUEST_FILES } from "../../adapters/qemu/virtual-machine.ts";
import { parseNumberList } from "../../core/discovery/parse-values.ts";
import { systemClock } from "../../runtime/clock.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import type { MachineDefaults } from "../../services/compute-agent/qemu/machine-of-server.ts";
import { QemuDriver } from "../../services/compute-agent/qemu/qemu-driver.ts";
import type { QemuDriverOptions } from "../../services/compute-agent/qemu/qemu-driver-options.ts";
import { lookAtQemusBelow } from "./look-at-qemus-below.ts";

const PROGRAMS = ["qemu-system-x86_64", "qemu-img", "genisoimage"];

/** Why tests with virtual machines cannot run here, or null when they can. */
export function whyNoQemu(): string | null {
  const missing = PROGRAMS.filter((program) => {
    try {
      execFileSync(program, ["--version"], { stdio: "ignore" });
      return false;
    } catch {
      return true;
    }
  });
  return missing.length === 0
    ? null
    : `${missing.join(", ")} missing; npm run test:long installs them as root on Debian`;
}

/** Why guests cannot be given the CPUs 0 and 1 here, or null when they can: a container may have other CPUs of its machine. */
export function whyNotTwoCpus(): string | null {
  const allowed = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "";
  const cpus = parseNumberList(allowed) ?? [];
  return cpus.includes(0) && cpus.includes(1) ? null : `this process may use the CPUs ${allowed}, and not both 0 and 1`;
}

/**
 * The MAC addresses of the interfaces that the QEMU in a guest's directory has, and the names of their network ends, also of those that no interface uses.
 * No agent may be connected to it, since QEMU serves one client at a time.
 */
export async function interfacesInQemu(dir: string): Promise<{ readonly macs: string[]; readonly ends: string[] }> {
  const client = await QmpClient.connect(join(dir, GUEST_FILES.monitor));
  try {
    return await interfacesShown(client);
  } finally {
    client.close();
  }
}

/** The same, over a connection to the QEMU's monitor. */
export async function interfacesShown(
  client: Pick<QmpClient, "execute">,
): Promise<{ readonly macs: string[]; readonly ends: string[] }> {
  const shown = await client.execute("human-monitor-command", { "command-line": "info network" });
  const found = [...String(shown).matchAll(/(\S+): index=\d+,type=(\w+)(?:.*macaddr=([0-9a-f:]+))?/g)];
  const ends = found.filter(([, , type]) => type !== "nic").map(([, name = ""]) => name);
  return { macs: found.flatMap(([, , , mac]) => mac ?? []).sort(), ends };
}

/** Whether the QEMU in a guest's directory has the file open. */
export function hasOpen(dir: string, file: string): boolean {
  const qemu = findRunningQemu(dir);
  if (qemu === null) return false;
  const fds = `/proc/${qemu.pid}/fd`;
  return readdirSync(fds).some((fd) => {
    try {
      return readlinkSync(join(fds, fd)) === file;
    } catch {
      return false; // closed meanwhile
    }
  });
}

/** The image of a nano guest that prints `R` where the usual one prints `T`. */
export function otherNanoImage(): Buffer {
  const image = nanoImage();
  // The instruction `movb $'T',%al`.
  const at = image.indexOf("b054", "hex");
  image.write("R", at + 1);
  return image;
}

/** The nano guest's image with more than four ticks a second instead of one, for tests that often wait for ticks. */
export function quickNanoImage(): Buffer {
  const image = nanoImage();
  // The instruction `cmpw $18,%ax`: so many ticks of the machine's timer come between two of the guest.
  image.writeUInt8(4, image.indexOf("83f812", "hex") + 2);
  return image;
}

/**
 * The nano guest's image with code that prints `N` for each non-maskable interrupt, between two ticks, and that releases each device that it is asked to.
 * Its first instructions jump to `init`, and `watch` is called where it halted:
 *
 *     init:    xorw %ax,%ax; movw %ax,%ds; movw $handler,0x8; movw %ax,0xa; movw %ax,0x7000; jmp 0x7c04
 *     handler: incw %cs:0x7000; iret                            # an interrupt in the middle of a tick does not tear it
 *     watch:   hlt
 *     say:     cmpw $0,0x7000; je release; decw 0x7000; movb $'N',%al; call put; movb $'\n',%al; call put; jmp say
 *     release: pushw %cx; xorl %ecx,%ecx
 *     bus:     movw $0xcd0,%dx; movl %ecx,%eax; outl %eax,%dx    # ACPI's registers for plugged devices: the bus, those to release, and the release
 *              movw $0xcc4,%dx; inl %dx,%eax; testl %eax,%eax; jz next; movw $0xcc8,%dx; outl %eax,%dx
 *     next:    incw %cx; cmpw $64,%cx; jb bus; popw %cx; movw $0x600,%dx; ret
 */
export function obligingNanoImage(): Buffer {
  const image = nanoImage();
  image.write("e9fd0090", "hex");
  image.write("e8de0090", image.indexOf("f4ba0006", "hex"), "hex");
  image.write(
    [
      "31c08ed8c7060800137da30a00a30070e9f1fe2eff060070cff4833e0070007410ff0e0070b04ee844ffb00ae83fffebe9",
      "516631c9bad00c6689c866efbac40c66ed6685c07405bac80c66ef4183f94072e359ba0006c3",
    ].join(""),
    0x100,
    "hex",
  );
  return image;
}

/** A directory with the nano guest's image in it, and room for guests. Its guests end with it. */
export interface QemuGuestsDir {
  readonly path: string;
  readonly images: string;
  readonly instancesPath: string;
  /** The directory of the volumes' files. */
  readonly volumes: string;
  /** Drivers of these guests. They are closed when the directory is removed, so that none works on beside later files of tests. */
  readonly drivers: Set<QemuDriver>;
  remove(): Promise<void>;
}

export function makeQemuGuestsDir(image = nanoImage()): QemuGuestsDir {
  // This also removes the directories of killed tests. Guests without a directory are recognised as those of killed
  // tests.
  const path = makeOwnedDir("qemu");
  endOrphans();
  const images = join(path, "images");
  const instancesPath = join(path, "instances");
  mkdirSync(images);
  mkdirSync(instancesPath);
  const volumes = join(path, "volumes");
  mkdirSync(volumes);
  writeFileSync(join(images, `${NANO_IMAGE_ID}.raw`), image);
  const drivers = new Set<QemuDriver>();
  return {
    path,
    images,
    instancesPath,
    volumes,
    drivers,
    async remove() {
      for (const driver of drivers) driver.close();
      for (const dir of instanceDirs(path)) await removeGuestDir(dir);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Ends guests of killed tests: QEMU processes in directories of this kind that no longer exist. Tests that run remove the directories of single guests. */
function endOrphans(): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [, made] = /^(.*\/berth-qemu-[^/]+).* \(deleted\)$/.exec(readlinkSync(`/proc/${pid}/cwd`)) ?? [];
      if (made !== undefined && !existsSync(made)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // The process has ended, or is another user's.
    }
  }
}

/** A server's guest as its directory shows it. */
export interface GuestOnDisk {
  readonly dir: string;
  readonly host: string;
  readonly attemptId: string;
  /** The numbers that the nano guest has printed, oldest first. */
  readonly ticks: readonly number[];
  /** The output of the nano guest, with `P` for each time that its power button was pressed. */
  readonly console: string;
}

/** All guests that the directory has of a server. */
export function guestsOnDisk(path: string, serverUuid: string): readonly GuestOnDisk[] {
  return instanceDirs(path).flatMap((dir) => {
    const record = readGuestRecord(dir);
    if (record?.serverUuid !== serverUuid) return [];
    const { host, attemptId } = record;
    const text = readLog(join(dir, GUEST_FILES.consoleLog));
    const ticks = [...text.matchAll(/^T([0-9A-F]{4})$/gm)].map(([, hex]) => Number.parseInt(hex ?? "", 16));
    return [{ dir, host, attemptId, ticks, console: text }];
  });
}

/** The numbers that a nano guest has printed since its last boot. */
export const ticksSinceBoot = (ticks: readonly number[]): readonly number[] =>
  ticks.slice(Math.max(0, ticks.lastIndexOf(1)));

function readLog(path: string): string {
  try {
    return readFileSync(path, "latin1").replaceAll("\r", "");
  } catch {
    return "";
  }
}

/** The working directories of all QEMU processes below a directory, sorted. */
export function qemusBelow(path: string): readonly string[] {
  const dirs = readdirSync("/proc").flatMap((pid) => {
    try {
      const cwd = /^\d+$/.test(pid) ? readlinkSync(`/proc/${pid}/cwd`) : "";
      return cwd.startsWith(`${path}/`) && /\/guest-[^/]*$/.test(cwd) && findRunningQemu(cwd) !== null ? [cwd] : [];
    } catch {
      return []; // ended meanwhile
    }
  });
  return dirs.sort();
}

/** Kills the QEMU that runs in a guest's directory. */
export function killQemu(dir: string): void {
  signalQemu(dir, "SIGKILL");
}

/** Pauses the QEMU in a guest's directory, as if its host hung. */
export function haltQemu(dir: string): void {
  signalQemu(dir, "SIGSTOP");
}

/** Lets a paused QEMU go on. */
export function continueQemu(dir: string): void {
  signalQemu(dir, "SIGCONT");
}

function signalQemu(dir: string, signal: NodeJS.Signals): void {
  const running = findRunningQemu(dir);
  if (running === null) throw new Error(`no QEMU runs in ${dir}`);
  process.kill(running.pid, signal);
}

/** The directories of guests below a directory. Agents may change it meanwhile. */
export function instanceDirs(path: string): readonly string[] {
  return foldersOf(path).flatMap((name) => {
    const dir = join(path, name);
    return name.startsWith("guest-") ? [dir] : instanceDirs(dir);
  });
}

function foldersOf(path: string): readonly string[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** The machines of guests in tests. They have no displays. */
export const NANO_DEFAULTS: MachineDefaults = {
  ...{ machineType: "pc-q35-7.2", accel: "tcg", cpuModel: "qemu64", bridge: null, display: null },
};

export function qemuDriverIn(dir: QemuGuestsDir, options: Partial<QemuDriverOptions> = {}): QemuDriver {
  const { images: imagesPath, instancesPath } = dir;
  const driver = new QemuDriver({
    ...{
      clock: systemClock,
      program: "qemu-system-x86_64",
      imagesPath,
      instancesPath,
      transferHost: "127.0.0.1",
      hasSecretTransfers: true,
      hasDisplays: false,
      userNetwork: "isolated",
      sysroot: "/",
    },
    imageCache: join(instancesPath, "_base"),
    shutdownMs: 5_000,
    pressAgainMs: 200,
    defaults: async () => NANO_DEFAULTS,
    lookAtQemus: lookAtQemusBelow(dir.path),
    ...options,
  });
  dir.drivers.add(driver);
  return driver;
}

/** The smallest flavor that the nano guest runs with. */
export const NANO_FLAVOR = {
  ...{ id: "nano", name: "nano", vcpus: 1, memoryMib: 16, diskGib: 1 },
  ...{ ephemeralGib: 0, swapMib: 0, extraSpecs: {} },
};
