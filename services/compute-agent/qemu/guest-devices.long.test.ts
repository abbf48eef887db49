import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readGuestRecord, writeGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import type { AllocationRequest } from "../../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { makeSysroot, sriovCard } from "../../../test/rigs/made-up-sysroot.ts";
import {
  guestsOnDisk,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import { standInQemu, usableCard, VFS } from "../../../test/rigs/stand-in-devices.ts";
import type { PrepareOrder } from "../driver.ts";
import type { QemuDriver } from "./qemu-driver.ts";
import type { QemuDriverOptions } from "./qemu-driver-options.ts";

const NEVER = new AbortController().signal;
const PLACE = { provider: "card", resourceClass: "SRIOV_NET_VF", addresses: VFS, mdev: null };

describe.skipIf(whyNoQemu() !== null)(
  `a guest with devices of its host${whyNoQemu() === null ? "" : " (skipped: no QEMU)"}`,
  () => {
    let dir: QemuGuestsDir;
    let driver: QemuDriver;
    beforeEach(() => {
      dir = makeQemuGuestsDir();
    });
    afterEach(async () => {
      driver.close();
      await dir.remove();
    });

    function opened(sysroot: string, options: Partial<QemuDriverOptions> = {}): void {
      const layoutOf = () => ({ places: [], cores: [], devices: [PLACE] });
      driver = qemuDriverIn(dir, { sysroot, layoutOf, ...options });
    }

    const nameOf = (index: number) => ({
      host: "h1",
      serverUuid: serverSpec(index).uuid,
      attemptId: `task-${index}/0`,
    });
    const dirOf = (index: number) => join(dir.instancesPath, `guest-task-${index}+0`);
    function prepare(index: number, items: AllocationRequest["items"], moved: Partial<PrepareOrder> = {}) {
      const server = serverSpec(index, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID });
      const order = { ...nameOf(index), server, movedFrom: null, allocation: { items, mappings: {} }, ...moved };
      return driver.prepare(order, { signal: NEVER, onStep: () => undefined });
    }
    /** Prepares a second guest of server 1 on a host, and returns it with the hand-over to it. */
    async function movedGuest(by: string, host: string, items: AllocationRequest["items"]) {
      const to = { host, serverUuid: nameOf(1).serverUuid, attemptId: "task-2/0" };
      const outcome = await prepare(1, items, { ...to, movedFrom: { ...nameOf(1), by } });
      if (outcome.kind !== "prepared") throw new Error(outcome.reason);
      const { listensAt = "" } = outcome;
      const order = { ...nameOf(1), toHost: host, toAttemptId: to.attemptId, listensAt, orderId: "o1" };
      const handOff = () => driver.handOff({ ...order, live: false, force: false }, NEVER, () => undefined);
      return { to, handOff };
    }
    const programOf = (index: number) =>
      readFileSync(`/proc/${findRunningQemu(dirOf(index))?.pid}/cmdline`, "latin1").split("\0");
    const ticks = (attemptId: string) =>
      eventually("the guest to tick", () =>
        guestsOnDisk(dir.path, nameOf(1).serverUuid).some((one) => one.attemptId === attemptId && one.ticks.length > 0),
      );
    const oneVf = [{ provider: "card", resourceClass: "SRIOV_NET_VF", amount: 1 }];
    /** The guest of a server as an earlier agent has left it, stopped, with these functions. */
    async function stoppedGuest(index: number, ...addresses: readonly string[]): Promise<void> {
      mkdirSync(dirOf(index), { recursive: true });
      const devices = addresses.map((address) => ({ kind: "pci" as const, address }));
      const pinning = { vcpus: [], held: [], emulator: [], memory: [], isBound: false, pageKib: null, devices };
      await writeGuestRecord(dirOf(index), guestRecord({ ...nameOf(index), pinning, hasRun: true }));
    }

    test("is started by QEMU with a function that no other guest has, and fails with QEMU's reason where QEMU cannot open it", async () => {
      opened(usableCard());
      await stoppedGuest(1, VFS[0]);
      const outcome = await prepare(2, oneVf);
      expect(outcome).toMatchObject({ kind: "failed", failure: "reschedule" });
      expect(outcome).toMatchObject({ reason: expect.stringMatching(/host=0000:3b:02\.1.*: no such host device/) });
      expect(readGuestRecord(dirOf(2))?.pinning?.devices).toEqual([{ kind: "pci", address: VFS[1] }]);
    });

    test.each([
      ["a class that the operator has named", "CUSTOM_GPU", ["CUSTOM_GPU"]],
      ["the standard class of whole graphics cards", "PGPU", []],
    ])("has the device of the provider that its claim names on QEMU's command line, for %s", async (_, name, own) => {
      const devices = VFS.map((address, index) => ({
        ...{ provider: `card${index}`, resourceClass: name, addresses: [address], mdev: null },
      }));
      const layoutOf = () => ({ places: [], cores: [], devices, deviceClasses: own });
      opened(usableCard(), { program: standInQemu(dir), layoutOf });
      expect(await prepare(1, [{ provider: "card1", resourceClass: name, amount: 1 }])).toMatchObject({
        kind: "prepared",
      });
      expect(readGuestRecord(dirOf(1))?.pinning?.devices).toEqual([{ kind: "pci", address: VFS[1] }]);
      expect(programOf(1)).toContain("pci-testdev,id=hostdev0");
      const again = await prepare(2, [{ provider: "card1", resourceClass: name, amount: 1 }]);
      expect(again).toMatchObject({ kind: "failed", reason: expect.stringContaining("of which 0 are free") });
      // What is counted and is no device needs none.
      const licence = [{ provider: "card1", resourceClass: "CUSTOM_LICENCE", amount: 2 }];
      expect(await prepare(3, licence)).toMatchObject({ kind: "prepared" });
      expect(programOf(3).filter((option) => option.includes("hostdev"))).toEqual([]);
    });

    test.each(["rebuild", "resize"])(
      "keeps its function, which only one QEMU can open, at a %s on its host",
      async (by) => {
        opened(usableCard(), { program: standInQemu(dir), shutdownMs: 200 });
        expect(await prepare(1, oneVf)).toMatchObject({ kind: "prepared" });
        await driver.start(nameOf(1), NEVER);
        await ticks("task-1/0");
        const { to, handOff } = await movedGuest(by, "h1", oneVf);
        expect(readGuestRecord(dirOf(2))?.pinning?.devices).toEqual([{ kind: "pci", address: VFS[0] }]);
        expect(programOf(2)).not.toContain("pci-testdev,id=hostdev0");
        await handOff();
        expect(findRunningQemu(dirOf(1))).toBeNull();
        await driver.start(to, NEVER);
        expect(programOf(2)).toContain("pci-testdev,id=hostdev0");
        await ticks("task-2/0");
      },
    );

    test("is copied without its function while it is stopped, and is started with it afterwards", async () => {
      const program = standInQemu(dir);
      const sysroot = usableCard();
      opened(sysroot, { program, shutdownMs: 200 });
      await prepare(1, oneVf);
      await driver.start(nameOf(1), NEVER);
      await driver.power(nameOf(1), "stop", NEVER);
      driver.close();
      // The QEMU of this driver can open no function.
      opened(sysroot);
      await driver.snapshot(nameOf(1), "6f1f2ad0-7d3c-4d0b-8f0e-0c9b6a8c0002", NEVER);
      const { handOff } = await movedGuest("migrate", "h2", []);
      await handOff();
      driver.close();
      opened(sysroot, { program, shutdownMs: 200 });
      await driver.start(nameOf(1), NEVER);
      expect(programOf(1)).toContain("pci-testdev,id=hostdev0");
    });

    test("gets its function when a QEMU that was started for copying is still there", async () => {
      opened(usableCard(), { program: standInQemu(dir), shutdownMs: 200 });
      await prepare(1, oneVf);
      await driver.start(nameOf(1), NEVER);
      await driver.power(nameOf(1), "stop", NEVER);
      const { handOff } = await movedGuest("migrate", "h2", []);
      await driver.destroy({ ...nameOf(1), host: "h2", attemptId: "task-2/0" });
      await expect(handOff()).rejects.toThrow();
      expect(programOf(1)).not.toContain("pci-testdev,id=hostdev0");
      await driver.start(nameOf(1), NEVER);
      expect(programOf(1)).toContain("pci-testdev,id=hostdev0");
    });

    test("gets a mediated device that its host has already, which stays when the guest is destroyed", async () => {
      const uuid = "6f1f2ad0-7d3c-4d0b-8f0e-0c9b6a8c0001";
      const mdev = { parent: "0000:41:00.0", type: "nvidia-35" };
      const remove = `/sys/bus/mdev/devices/${uuid}/remove`;
      const listed = `/sys/bus/pci/devices/${mdev.parent}/mdev_supported_types/${mdev.type}/devices/${uuid}`;
      const sysroot = makeSysroot({ [listed]: {}, [remove]: "" });
      const place = { provider: "gpu", resourceClass: "VGPU", addresses: [], mdev };
      opened(sysroot, { layoutOf: () => ({ places: [], cores: [], devices: [place] }) });
      await prepare(1, [{ provider: "gpu", resourceClass: "VGPU", amount: 1 }]);
      expect(readGuestRecord(dirOf(1))?.pinning?.devices).toEqual([{ kind: "mdev", uuid, ...mdev, isFound: true }]);
      await driver.destroy(nameOf(1));
      expect(readFileSync(join(sysroot, remove), "utf8")).toBe("");
    });

    test("is refused with the reason when all functions belong to guests, until one of these is destroyed", async () => {
      opened(usableCard());
      await stoppedGuest(1, ...VFS);
      expect(await prepare(2, oneVf)).toMatchObject({ reason: expect.stringContaining("of which 0 are free") });
      await driver.destroy(nameOf(1));
      expect(await prepare(3, oneVf)).toMatchObject({ reason: expect.stringContaining("no such host device") });
    });

    test("is refused where its function cannot be given to guests, and where the agent does not know which functions there are", async () => {
      opened(makeSysroot(sriovCard()));
      expect(await prepare(1, oneVf)).toEqual({
        ...{ kind: "failed", failure: "reschedule" },
        reason: expect.stringContaining("PCI device 0000:3b:02.0 is bound to no driver"),
      });
      driver.close();
      opened("/", { layoutOf: () => null });
      const gpu = [{ provider: "gpu0", resourceClass: "PGPU", amount: 1 }];
      expect(await prepare(2, gpu)).toEqual({
        ...{ kind: "failed", failure: "reschedule" },
        reason: expect.stringContaining("does not know which devices these are"),
      });
    });

    test("is not started when the device or the huge pages are gone after a restart of the host, and the error says which", async () => {
      const sysroot = usableCard();
      opened(sysroot);
      await stoppedGuest(1, VFS[0]);
      rmSync(join(sysroot, "sys/bus/pci/devices", VFS[0]));
      await expect(driver.power(nameOf(1), "start", NEVER)).rejects.toThrow(
        `the host no longer has the guest's PCI device ${VFS[0]}`,
      );
      const pages = makeSysroot({ "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "3\n" });
      driver.close();
      opened(pages);
      mkdirSync(dirOf(2));
      const memory = [{ memoryMib: 16, hostNode: null }];
      const pinning = { vcpus: [], held: [], emulator: [], memory, isBound: false, pageKib: 2_048 };
      await writeGuestRecord(dirOf(2), guestRecord({ ...nameOf(2), pinning, hasRun: true }));
      await expect(driver.power(nameOf(2), "start", NEVER)).rejects.toThrow(
        "the guest needs 8 huge pages of 2048 KiB, and the host has 3 free ones",
      );
    });
  },
);
