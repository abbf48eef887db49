import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  guestsOnDisk,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  ticksSinceBoot,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const PATIENT = { everyMs: 20, withinMs: 60_000 };
const GIB = 1_024 ** 3;
const MIB = 1_024 ** 2;
const skipped = whyNoQemu();

/** The disks of a flavor. */
interface Disks {
  readonly diskGib?: number;
  readonly ephemeralGib?: number;
  readonly swapMib?: number;
}

describe.skipIf(skipped !== null)(
  `a virtual machine that is resized${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    const dirs: QemuGuestsDir[] = [];
    const drivers: QemuDriver[] = [];
    afterEach(async () => {
      for (const driver of drivers.splice(0)) driver.close();
      for (const dir of dirs.splice(0)) await dir.remove();
    });

    const open = (dir: QemuGuestsDir) => {
      const driver = qemuDriverIn(dir);
      drivers.push(driver);
      return driver;
    };
    const orderOf = (host: string, disks: Disks, isMoved: boolean) => {
      const server = serverSpec(1, { flavor: { ...NANO_FLAVOR, ...disks }, imageRef: NANO_IMAGE_ID });
      const movedFrom = isMoved ? { host: "h1", attemptId: "task/h1", by: "resize" } : null;
      const attemptId = isMoved ? "task/h2" : "task/h1";
      return { host, serverUuid: server.uuid, attemptId, server, allocation: undefined, movedFrom };
    };
    const inDisk = (path: string, command: string) =>
      execFileSync("qemu-io", ["-f", "qcow2", "-c", command, path], { stdio: "pipe" }).toString();
    const bytesOf = (path: string): number =>
      JSON.parse(execFileSync("qemu-img", ["info", "-U", "--output=json", path]).toString())["virtual-size"];

    /** A guest of one flavor with a mark in each of its disks, and a guest of another flavor that was prepared for it. */
    async function scene(from: Disks, to: Disks, isSameHost = false) {
      const here = makeQemuGuestsDir();
      const there = isSameHost ? here : makeQemuGuestsDir();
      dirs.push(...new Set([here, there]));
      const driver = open(here);
      const other = isSameHost ? driver : open(there);
      const source = orderOf("h1", from, false);
      const destination = orderOf(isSameHost ? "h1" : "h2", to, true);
      await driver.prepare(source, { signal: NEVER, onStep: () => undefined });
      await driver.start(source, NEVER);
      const found = (dir: QemuGuestsDir, attemptId: string) => {
        const one = guestsOnDisk(dir.path, source.serverUuid).find((guest) => guest.attemptId === attemptId);
        if (one === undefined) throw new Error(`no guest of ${attemptId}`);
        return one;
      };
      const sourceGuest = () => found(here, source.attemptId);
      const guest = () => found(there, destination.attemptId);
      await eventually("a tick", () => sourceGuest().ticks.length > 0, PATIENT);
      await driver.power(source, "stop", NEVER);
      for (const [index] of Object.entries(marksOf(from)))
        inDisk(join(sourceGuest().dir, `disk${index}.qcow2`), `write -P ${16 + Number(index)} 40M 64k`);
      await driver.power(source, "start", NEVER);
      await eventually("ticks", () => ticksSinceBoot(sourceGuest().ticks).length > 1, PATIENT);
      const outcome = await other.prepare(destination, { signal: NEVER, onStep: () => undefined });
      const listensAt = (outcome.kind === "prepared" && outcome.listensAt) || "";
      const order = { ...source, toHost: destination.host, toAttemptId: destination.attemptId, listensAt };
      const handOff = () =>
        driver.handOff({ ...order, live: false, force: false, orderId: "o" }, NEVER, () => undefined);
      const diskAt = (index: number) => join(guest().dir, `disk${index}.qcow2`);
      return { here, driver, other, source, destination, sourceGuest, guest, order, handOff, diskAt };
    }

    test.each([true, false])("has its data on the larger disk (on the same host: %s)", async (isSameHost) => {
      const it = await scene({ diskGib: 1 }, { diskGib: 3 }, isSameHost);
      await it.handOff();
      await it.handOff();
      await it.other.start(it.destination, NEVER);
      await eventually("ticks", () => it.guest().ticks.length > 1, PATIENT);
      await it.other.power(it.destination, "stop", NEVER);
      expect(bytesOf(it.diskAt(0))).toBe(3 * GIB);
      expect(inDisk(it.diskAt(0), "read -P 16 40M 64k")).not.toContain("failed");
      // Beyond the old disk there is nothing.
      expect(inDisk(it.diskAt(0), "read -P 0 1G 64k")).not.toContain("failed");
      // The other guest stays what it was, for a revert.
      await it.driver.start(it.source, NEVER);
      await it.driver.power(it.source, "stop", NEVER);
      expect(bytesOf(join(it.sourceGuest().dir, "disk0.qcow2"))).toBe(GIB);
    });

    test("is refused a smaller disk with the reason, and runs on all the time", async () => {
      const it = await scene({ diskGib: 2 }, { diskGib: 1 });
      await expect(it.handOff()).rejects.toThrow(
        `the guest's disk0 has ${2 * GIB} bytes, and that of the destination only ${GIB}: a disk is never made smaller`,
      );
      expect(await it.driver.powersOf([it.source])).toEqual(["running"]);
      const before = it.sourceGuest().ticks.length;
      await eventually("further ticks", () => it.sourceGuest().ticks.length > before, PATIENT);
      expect(it.sourceGuest().console.match(/^P$/gm)).toHaveLength(1);
      // The refusal leaves nothing behind that would keep a later move from succeeding.
      await it.other.destroy(it.destination);
      const again = { ...orderOf("h2", { diskGib: 2 }, true), attemptId: "task/again" };
      const prepared = await it.other.prepare(again, { signal: NEVER, onStep: () => undefined });
      const listensAt = (prepared.kind === "prepared" && prepared.listensAt) || "";
      const order = { ...it.source, toHost: "h2", toAttemptId: again.attemptId, listensAt, orderId: "again" };
      await it.driver.handOff({ ...order, live: false, force: false }, NEVER, () => undefined);
      await it.other.start(again, NEVER);
      expect(await it.other.powersOf([again])).toEqual(["running"]);
    });

    test("has the data of its ephemeral disk in the ephemeral disk, also when the swap disk is new", async () => {
      const it = await scene({ ephemeralGib: 1 }, { ephemeralGib: 2, swapMib: 64 });
      await it.handOff();
      await it.other.start(it.destination, NEVER);
      await it.other.power(it.destination, "stop", NEVER);
      for (const [index, pattern] of [16, 17, 0].entries())
        expect(inDisk(it.diskAt(index), `read -P ${pattern} 40M 64k`)).not.toContain("failed");
      expect([0, 1, 2].map((index) => bytesOf(it.diskAt(index)))).toEqual([GIB, 2 * GIB, 64 * MIB]);
    });

    test("is refused a flavor without its ephemeral disk, and runs on all the time", async () => {
      const it = await scene({ ephemeralGib: 1 }, { swapMib: 64 });
      await expect(it.handOff()).rejects.toThrow('the disk "ephemeral" with data, and the new flavor has none');
      expect(await it.driver.powersOf([it.source])).toEqual(["running"]);
      expect(it.sourceGuest().console.match(/^P$/gm)).toHaveLength(1);
    });

    /** Makes the record of a guest one of an earlier version, which did not record what its disks are. */
    const forgetRoles = (dir: string) => {
      const record = JSON.parse(readFileSync(join(dir, "guest.json"), "utf8"));
      for (const disk of record.machine.disks) delete disk.role;
      writeFileSync(join(dir, "guest.json"), JSON.stringify(record));
    };

    test("is refused a swap disk for a disk of which an earlier version did not record whether it has data, and runs on all the time", async () => {
      const it = await scene({ ephemeralGib: 1 }, { swapMib: 2_048 });
      it.driver.close();
      forgetRoles(it.sourceGuest().dir);
      const driver = open(it.here);
      const order = { ...it.order, live: false, force: false, orderId: "o" };
      await expect(driver.handOff(order, NEVER, () => undefined)).rejects.toThrow(
        `the guest's disk1 has ${GIB} bytes, and the only disk for it at the destination is a swap disk of ${2 * GIB}`,
      );
      expect(await driver.powersOf([it.source])).toEqual(["running"]);
      expect(it.sourceGuest().console.match(/^P$/gm)).toHaveLength(1);
    });

    test("keeps its swap disk, of which an earlier version did not record that it is one, if that stays as it is", async () => {
      const it = await scene({ swapMib: 64 }, { diskGib: 2, swapMib: 64 });
      it.driver.close();
      forgetRoles(it.sourceGuest().dir);
      const order = { ...it.order, live: false, force: false, orderId: "o" };
      await open(it.here).handOff(order, NEVER, () => undefined);
      await it.other.start(it.destination, NEVER);
      await it.other.power(it.destination, "stop", NEVER);
      for (const [index, pattern] of [16, 17].entries())
        expect(inDisk(it.diskAt(index), `read -P ${pattern} 40M 64k`)).not.toContain("failed");
    });

    test("has no data of its swap disk in the ephemeral disk that the new flavor has instead", async () => {
      const it = await scene({ swapMib: 64 }, { ephemeralGib: 1 });
      await it.handOff();
      await it.other.start(it.destination, NEVER);
      await it.other.power(it.destination, "stop", NEVER);
      expect(inDisk(it.diskAt(0), "read -P 16 40M 64k")).not.toContain("failed");
      expect(inDisk(it.diskAt(1), "read -P 0 40M 64k")).not.toContain("failed");
    });
  },
);

const marksOf = ({ ephemeralGib = 0, swapMib = 0 }: Disks): readonly number[] => [
  ...[GIB, ephemeralGib * GIB, swapMib * MIB].filter((bytes) => bytes > 0),
];
