import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nanoImage } from "../../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import type { ServerVolume } from "../../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../../test/rigs/begin-operation.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  guestsOnDisk,
  hasOpen,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { GuestName } from "../journal.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const EXPORT = "storage:/volumes";
const BYTES = 1 << 20;
const skipped = whyNoQemu();
type Format = "raw" | "qcow2";

function inCinder(server: number, format: Format, values: Partial<ServerVolume> = {}): ServerVolume {
  const volume = { ...volumeOf(server), ...values };
  return { ...volume, inCinder: true, connection: wayTo(volume.volumeId, format) };
}
const wayTo = (id: string, format: Format) =>
  JSON.stringify({ driver_volume_type: "nfs", export: EXPORT, name: `volume-${id}`, format });
const ROOT = inCinder(1, "raw", { isRoot: true });
const OTHER_ID = volumeOf(7).volumeId;

describe.skipIf(skipped !== null)(
  `replacing volumes of virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let dir: QemuGuestsDir;
    let driver: QemuDriver;
    let mount: string;
    beforeEach(() => {
      dir = makeQemuGuestsDir();
      mount = join(dir.volumes, createHash("md5").update(EXPORT).digest("hex"));
      mkdirSync(mount);
      writeFileSync(fileOf(ROOT.volumeId), nanoImage());
      driver = qemuDriverIn(dir, { volumeMounts: dir.volumes });
    });
    afterEach(async () => {
      driver.close();
      await dir.remove();
    });

    const fileOf = (id: string) => join(mount, `volume-${id}`);
    const onDisk = (guest: GuestName) =>
      guestsOnDisk(dir.path, guest.serverUuid).find(({ host }) => host === guest.host)!;
    const isOpen = (guest: GuestName, id: string) => hasOpen(onDisk(guest).dir, fileOf(id));
    const opened = (guest: GuestName) => [isOpen(guest, DATA.volumeId), isOpen(guest, OTHER_ID)];
    let DATA: ServerVolume;

    function make(id: string, format: Format, bytes = BYTES): void {
      if (format === "qcow2") execFileSync("qemu-img", ["create", "-q", "-f", format, fileOf(id), `${bytes}`]);
      else truncateSync(fileOf(id), bytes);
    }

    /** A guest that runs with a volume that has this content, and the volume that is to replace it. */
    async function running({
      from = "raw",
      to = "raw",
      bytes = BYTES,
    }: {
      from?: Format;
      to?: Format;
      bytes?: number;
    } = {}) {
      DATA = inCinder(2, from);
      writeFileSync(fileOf(DATA.volumeId), "");
      writeFileSync(fileOf(OTHER_ID), "");
      make(DATA.volumeId, from);
      make(OTHER_ID, to, bytes);
      execFileSync("qemu-io", ["-f", from, "-c", "write -q -P 0x5a 64k 64k", fileOf(DATA.volumeId)]);
      const server = serverSpec(1, { flavor: NANO_FLAVOR, imageRef: "", volumes: [ROOT, DATA] });
      const guest = { host: "h1", serverUuid: server.uuid, attemptId: "task/h1" };
      const control = { signal: NEVER, onStep: () => undefined };
      const order = { ...guest, server, allocation: undefined, movedFrom: null };
      expect(await driver.prepare(order, control)).toMatchObject({ kind: "prepared" });
      await driver.start(guest, NEVER);
      expect(opened(guest)).toEqual([true, false]);
      return { guest, volume: { ...DATA, replacedBy: OTHER_ID, connection: wayTo(OTHER_ID, to) } };
    }
    /** Whether the file has the content of the volume. QEMU must not have it open. */
    const hasContent = (id: string, format: Format) =>
      execFileSync("qemu-io", ["-r", "-f", format, "-c", "read -P 0x5a 64k 64k", fileOf(id)], { encoding: "utf8" });
    const boots = (guest: GuestName, after: number) =>
      eventually("the guest to boot", () => /T/.test(onDisk(guest).console.slice(after)), {
        everyMs: 20,
        withinMs: 60_000,
      });
    const restart = () => {
      driver.close();
      driver = qemuDriverIn(dir, { volumeMounts: dir.volumes });
    };
    async function reboot(guest: GuestName): Promise<void> {
      const before = onDisk(guest).console.length;
      await driver.power(guest, "hard-reboot", NEVER);
      await boots(guest, before);
    }

    test.each([
      ["raw", "raw"],
      ["raw", "qcow2"],
      ["qcow2", "raw"],
    ] as const)(
      "a %s volume is replaced by a %s one while the guest runs, for good, and then back again",
      async (from, to) => {
        const { guest, volume } = await running({ from, to });
        for (let time = 0; time < 2; time += 1) await driver.changeVolume(guest, volume, "mirror", NEVER);
        expect(opened(guest)).toEqual([true, true]);
        for (let time = 0; time < 2; time += 1) await driver.changeVolume(guest, volume, "pivot", NEVER);
        expect(opened(guest)).toEqual([false, true]);
        await driver.changeVolume(guest, volume, "mirror", NEVER);
        await expect(driver.changeVolume(guest, volume, "keep", NEVER)).rejects.toThrow("already");
        expect(opened(guest)).toEqual([false, true]);
        await reboot(guest);
        expect(opened(guest)).toEqual([false, true]);
        const third = volumeOf(8).volumeId;
        writeFileSync(fileOf(third), "");
        make(third, from);
        const again = { ...volume, replacedBy: third, connection: wayTo(third, from) };
        await driver.changeVolume(guest, again, "mirror", NEVER);
        await driver.changeVolume(guest, again, "pivot", NEVER);
        expect([...opened(guest), isOpen(guest, third)]).toEqual([false, false, true]);
        await driver.detachVolume(guest, DATA.volumeId, NEVER);
        expect([...opened(guest), isOpen(guest, third)]).toEqual([false, false, false]);
        for (const [id, format] of [
          [OTHER_ID, to],
          [third, from],
        ] as const)
          expect(hasContent(id, format)).not.toContain("failed");
      },
    );

    test("a copy is called off, and another one can be made", async () => {
      const { guest, volume } = await running();
      await driver.changeVolume(guest, volume, "keep", NEVER);
      await driver.changeVolume(guest, volume, "mirror", NEVER);
      for (let time = 0; time < 2; time += 1) await driver.changeVolume(guest, volume, "keep", NEVER);
      expect(opened(guest)).toEqual([true, false]);
      await expect(driver.changeVolume(guest, volume, "pivot", NEVER)).rejects.toThrow("there is no complete copy");
      expect(opened(guest)).toEqual([true, false]);
      await driver.changeVolume(guest, volume, "mirror", NEVER);
      await driver.changeVolume(guest, volume, "pivot", NEVER);
      expect(opened(guest)).toEqual([false, true]);
    });

    test("the agent may end between any two steps", async () => {
      const { guest, volume } = await running();
      restart();
      await driver.changeVolume(guest, volume, "mirror", NEVER);
      restart();
      await driver.changeVolume(guest, volume, "mirror", NEVER);
      await driver.changeVolume(guest, volume, "pivot", NEVER);
      restart();
      await driver.changeVolume(guest, volume, "pivot", NEVER);
      expect(opened(guest)).toEqual([false, true]);
      await reboot(guest);
      expect(opened(guest)).toEqual([false, true]);
    });

    test("a guest that ends while it is copied keeps its volume, and one that ends when it is decided for the other one has that one", async () => {
      const { guest, volume } = await running();
      await driver.changeVolume(guest, volume, "mirror", NEVER);
      const kill = async () => {
        const qemu = findRunningQemu(onDisk(guest).dir);
        process.kill(qemu?.pid ?? 0, "SIGKILL");
        await eventually("QEMU to end", () => findRunningQemu(onDisk(guest).dir) === null);
      };
      await kill();
      await expect(driver.changeVolume(guest, volume, "pivot", NEVER)).rejects.toThrow("does not run");
      await driver.changeVolume(guest, volume, "keep", NEVER);
      await reboot(guest);
      expect(opened(guest)).toEqual([true, false]);
      await driver.changeVolume(guest, volume, "mirror", NEVER);
      const path = join(onDisk(guest).dir, "guest.json");
      const record = JSON.parse(readFileSync(path, "utf8"));
      // The agent ended after it had decided, and before it told QEMU.
      record.volumes = record.volumes.map((one: Record<string, unknown>) =>
        one.volumeId === DATA.volumeId
          ? {
              ...{ ...one, connection: volume.connection, replacedBy: OTHER_ID },
              replacement: { ...(one.replacement as object), isDecided: true },
            }
          : one,
      );
      writeFileSync(path, JSON.stringify(record));
      restart();
      await expect(driver.changeVolume(guest, volume, "keep", NEVER)).rejects.toThrow("already");
      await kill();
      await driver.changeVolume(guest, volume, "pivot", NEVER);
      await reboot(guest);
      expect(opened(guest)).toEqual([false, true]);
      await driver.changeVolume(guest, volume, "pivot", NEVER);
      expect(opened(guest)).toEqual([false, true]);
    });

    test.each(["raw", "qcow2"] as const)(
      "a guest sees that its %s volume has grown, also after a replacement, and never that it has shrunk",
      async (format) => {
        const { guest, volume } = await running({ from: format, to: format });
        const size = (id: string) =>
          JSON.parse(execFileSync("qemu-img", ["info", "-U", "--output=json", fileOf(id)], { encoding: "utf8" }))[
            "virtual-size"
          ];
        const extend = (sizeBytes: number) => driver.changeVolume(guest, { ...DATA, sizeBytes }, "extend", NEVER);
        for (const sizeBytes of [2 * BYTES, 2 * BYTES, BYTES, 0]) await extend(sizeBytes);
        expect(size(DATA.volumeId)).toBe(2 * BYTES);
        if (format === "raw") truncateSync(fileOf(OTHER_ID), 2 * BYTES);
        else execFileSync("qemu-img", ["resize", "-q", "-f", "qcow2", fileOf(OTHER_ID), `${2 * BYTES}`]);
        await driver.changeVolume(guest, volume, "mirror", NEVER);
        await driver.changeVolume(guest, volume, "pivot", NEVER);
        await extend(3 * BYTES);
        expect([size(DATA.volumeId), size(OTHER_ID)]).toEqual([2 * BYTES, 3 * BYTES]);
        await driver.power(guest, "stop", NEVER);
        await extend(4 * BYTES);
        expect(size(OTHER_ID)).toBe(3 * BYTES);
        expect(hasContent(OTHER_ID, format)).not.toContain("failed");
      },
    );

    test("a volume that is smaller, missing, or refers to another file replaces nothing", async () => {
      const { guest, volume } = await running({ bytes: BYTES / 2 });
      await expect(driver.changeVolume(guest, volume, "mirror", NEVER)).rejects.toThrow();
      expect(opened(guest)).toEqual([true, false]);
      const gone = { ...volume, replacedBy: volumeOf(9).volumeId, connection: wayTo(volumeOf(9).volumeId, "raw") };
      await expect(driver.changeVolume(guest, gone, "mirror", NEVER)).rejects.toThrow("is Cinder's export mounted");
      execFileSync("qemu-img", [
        ...[
          "create",
          "-q",
          "-f",
          "qcow2",
          "-b",
          `volume-${DATA.volumeId}`,
          "-F",
          "raw",
          "-u",
          fileOf(OTHER_ID),
          `${BYTES}`,
        ],
      ]);
      const forged = { ...volume, connection: wayTo(OTHER_ID, "qcow2") };
      await expect(driver.changeVolume(guest, forged, "mirror", NEVER)).rejects.toThrow("not one of the volume's own");
      await driver.changeVolume(guest, volume, "keep", NEVER);
      expect(opened(guest)).toEqual([true, false]);
    });
  },
);
