import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { FunctionNotes } from "../../../adapters/qemu/function-notes.ts";
import type { HostDevice } from "../../../core/pinning/host-device.ts";
import { bootId } from "../../../runtime/boot-id.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { lookAtQemusBelow } from "../../../test/rigs/look-at-qemus-below.ts";
import { makeSysroot, sriovCard } from "../../../test/rigs/made-up-sysroot.ts";
import type { FoundGuestDir } from "./guest-dirs.ts";
import { functionsOfGuests } from "./guest-functions.ts";

/** Of this process alone, since one of the tests looks at all QEMUs of the machine, each of which counts as the user of the functions that it names. */
const BUS = process.pid.toString(16);

/** Functions of which one is left over, of a guest that is gone. */
function leftOver(found: () => Promise<never[]>) {
  const dir = mkdtempSync(join(tmpdir(), "berth-guest-functions-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const functionNotes = join(dir, "functions.json");
  const note = { dir: join(dir, "gone"), portId: "p", mac: "fa:16:3e:00:00:01" };
  new FunctionNotes({ path: functionNotes, boot: bootId() }).put(`0000:${BUS}:02.0`, note);
  const clock = new ManualClock();
  const ran: string[] = [];
  const runProgram = async (_: string, args: readonly string[]) => void ran.push(args.join(" "));
  const sysroot = makeSysroot(sriovCard(BUS));
  const functions = functionsOfGuests({
    ...{ sysroot, dirs: { found }, runProgram, functionNotes, clock },
    lookAtQemus: lookAtQemusBelow(dir),
  });
  onTestFinished(() => functions.close());
  return { functions, clock, ran };
}

test("an agent that is closed while it looks for its guests clears nothing afterwards", async () => {
  const look = Promise.withResolvers<never[]>();
  const { functions, clock, ran } = leftOver(() => look.promise);
  const started = functions.start();
  functions.close();
  look.resolve([]);
  await started;
  expect([clock.pending, ran]).toEqual([0, []]);
});

test("no function is cleared while the guests are unknown, and it is cleared when they are known again", async () => {
  let looks = 0;
  let isReadable = false;
  const { functions, clock, ran } = leftOver(async () => {
    looks += 1;
    if (!isReadable) throw new Error("the storage does not answer");
    return [];
  });
  await functions.start();
  const afterMinutes = (what: string, isSo: () => boolean) =>
    eventually(what, () => {
      clock.advance(60_000);
      return isSo();
    });
  await afterMinutes("further looks", () => looks >= 3);
  expect(ran).toEqual([]);
  isReadable = true;
  await afterMinutes("the clearing", () => ran.length === 2);
  expect(ran).toEqual(["link set dev ens1f0 vf 0 mac 00:00:00:00:00:00 vlan 0", "link set dev ens1f0 vf 0 trust off"]);
});

describe("functions of QEMUs that run", () => {
  const VFS = [`0000:${BUS}:02.0`, `0000:${BUS}:02.1`] as const;
  const NEVER = new AbortController().signal;
  const portOf = (address: string, mac: string): HostDevice => ({
    ...{ kind: "pci", address },
    port: { portId: mac, mac, slot: 1, connection: { vlan: 7, isTrusted: false } },
  });
  const guestWith = (dir: string, ...devices: readonly HostDevice[]) => {
    const pinning = { vcpus: [], held: [], emulator: [], memory: [], isBound: false, pageKib: null, devices };
    return { dir, record: guestRecord({ host: "h", serverUuid: "s", attemptId: `${dir}/0`, pinning }) };
  };

  function rig(
    notes: Readonly<Record<string, string>>,
    guests: readonly FoundGuestDir[] = [],
    { looksAtMachine = false } = {},
  ) {
    const dir = mkdtempSync(join(tmpdir(), "berth-guest-functions-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const functionNotes = join(dir, "functions.json");
    const noted = new FunctionNotes({ path: functionNotes, boot: bootId() });
    const inDir = (name: string) => join(dir, name);
    for (const [address, name] of Object.entries(notes))
      noted.put(address, { dir: inDir(name), portId: "p", mac: "fa:16:3e:00:00:01" });
    const clock = new ManualClock();
    const ran: string[] = [];
    const unwritten: string[] = [];
    let looks = 0;
    const functions = functionsOfGuests({
      ...{ sysroot: makeSysroot(sriovCard(BUS)), functionNotes, clock },
      lookAtQemus: looksAtMachine ? undefined : lookAtQemusBelow(dir),
      dirs: {
        found: async () => {
          looks += 1;
          return guests.map((one) => ({ ...one, dir: inDir(one.dir) }));
        },
      },
      runProgram: async (_, args) => void ran.push(args.join(" ")),
      onNotesUnwritten: (path) => void unwritten.push(path),
    });
    onTestFinished(() => functions.close());
    return { functions, clock, ran, inDir, functionNotes, unwritten, looks: () => looks };
  }

  async function qemuIn(cwd: string, address: string) {
    mkdirSync(cwd, { recursive: true });
    const child = spawn("/bin/sh", ["-c", "sleep 600; true", `vfio-pci,host=${address}`], {
      ...{ argv0: "qemu-system-x86_64", cwd, stdio: "ignore" as const },
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child, "spawn");
    return child;
  }

  /** Lets minutes pass until the function that nobody has was cleared: whatever was to be done with the other one is done as well. */
  const untilCleared = ({ clock, ran }: ReturnType<typeof rig>, vf: number) =>
    eventually("the clearing", () => {
      clock.advance(60_000);
      return ran.some((line) => line.includes(`vf ${vf} trust off`));
    });

  test("are left alone by the next process when the guest's directory was removed, and cleared when its QEMU has ended", async () => {
    const one = rig({ [VFS[0]]: "guest-a+0", [VFS[1]]: "guest-gone+0" });
    const child = await qemuIn(one.inDir("guest-a+0"), VFS[0]);
    rmSync(one.inDir("guest-a+0"), { recursive: true });
    await one.functions.start();
    await untilCleared(one, 1);
    expect(one.ran.filter((line) => line.includes("vf 0"))).toEqual([]);
    child.kill("SIGKILL");
    await once(child, "exit");
    await untilCleared(one, 0);
  });

  test("are left alone when others than this agent have started the QEMU, also when the guest that is noted is destroyed", async () => {
    const one = rig({ [VFS[0]]: "guest-a+0", [VFS[1]]: "guest-gone+0" }, [], { looksAtMachine: true });
    const child = await qemuIn(one.inDir("of libvirt"), VFS[0]);
    await one.functions.start();
    await untilCleared(one, 1);
    await one.functions.release({ dir: one.inDir("guest-a+0"), record: null });
    expect(one.ran.filter((line) => line.includes("vf 0"))).toEqual([]);
    child.kill("SIGKILL");
    await once(child, "exit");
    await untilCleared(one, 0);
  });

  test("are not set for another guest, which is told whose they are", async () => {
    const one = rig({ [VFS[0]]: "guest-a+0" });
    await qemuIn(one.inDir("guest-a+0"), VFS[0]);
    rmSync(one.inDir("guest-a+0"), { recursive: true });
    const other = guestWith(one.inDir("guest-b+0"), portOf(VFS[0], "fa:16:3e:00:00:0b"));
    await expect(one.functions.connect(other, NEVER)).rejects.toThrow(
      new RegExp(
        `PCI device ${VFS[0]} of port fa:16:3e:00:00:0b is in use by a guest that runs, for port p \\(its directory was .*guest-a\\+0\\)`,
      ),
    );
    expect(one.ran).toEqual([]);
  });

  test("are looked for with one look at all guests a minute, however many there are, and with none when nothing is left over", async () => {
    const guests = VFS.map((address, index) =>
      guestWith(`guest-${index}+0`, portOf(address, `fa:16:3e:00:00:0${index}`)),
    );
    const one = rig({ [VFS[0]]: "guest-0+0", [VFS[1]]: "guest-1+0" }, guests);
    const children = [await qemuIn(one.inDir("guest-0+0"), VFS[0]), await qemuIn(one.inDir("guest-1+0"), VFS[1])];
    await one.functions.start();
    expect(one.looks()).toBe(1);
    for (const expected of [2, 3]) {
      await eventually("the next look", () => {
        if (one.looks() < expected) one.clock.advance(1_000);
        return one.looks() === expected && one.clock.pending === 1;
      });
      expect(one.looks()).toBe(expected);
    }
    expect(one.ran).toEqual([]);
    for (const child of children) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    await untilCleared(one, 0);
    await untilCleared(one, 1);
    const before = one.looks();
    for (let minute = 0; minute < 3; minute += 1) {
      await eventually("the next minute", () => one.clock.pending === 1);
      one.clock.advance(60_000);
    }
    expect(one.looks()).toBe(before);
  });

  test("are told to the operator when they cannot be noted, and noted when they can be again", async () => {
    const one = rig({});
    mkdirSync(`${one.functionNotes}.new`);
    await one.functions.connect(guestWith("/guests/a", portOf(VFS[0], "fa:16:3e:00:00:0a")), NEVER);
    await one.functions.connect(guestWith("/guests/b", portOf(VFS[1], "fa:16:3e:00:00:0b")), NEVER);
    expect(one.unwritten).toEqual([one.functionNotes]);
    rmSync(`${one.functionNotes}.new`, { recursive: true });
    await one.functions.start();
    await eventually("the notes", () => {
      one.clock.advance(60_000);
      return new FunctionNotes({ path: one.functionNotes, boot: bootId() }).all().size === 2;
    });
  });
});
