import { randomUUID } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDisk } from "../../../adapters/qemu/disk-image.ts";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { runTool } from "../../../adapters/qemu/run-tool.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  guestsOnDisk,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { GuestName } from "../journal.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const MIB = 1_048_576;
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(
  `images of virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let dir: QemuGuestsDir;
    let driver: QemuDriver;
    beforeEach(() => {
      dir = makeQemuGuestsDir();
      driver = qemuDriverIn(dir);
    });
    afterEach(async () => {
      driver.close();
      await dir.remove();
    });

    async function prepared(index: number, imageRef: string): Promise<GuestName> {
      const server = serverSpec(index, { flavor: NANO_FLAVOR, imageRef });
      const name = { host: "h1", serverUuid: server.uuid, attemptId: `${randomUUID()}/0` };
      const order = { ...name, server, movedFrom: null, allocation: undefined };
      const outcome = await driver.prepare(order, { signal: NEVER, onStep: () => undefined });
      expect(outcome).toEqual({ kind: "prepared" });
      return name;
    }
    const onDisk = ({ serverUuid }: GuestName) => guestsOnDisk(dir.path, serverUuid)[0]!;
    const ticks = (name: GuestName) => eventually("the guest to tick", () => onDisk(name).ticks.length > 0);
    /** Runs a command of qemu-io on an image, which fails if a pattern that is read is not there. */
    const qemuIo = (path: string, command: string) => runTool("qemu-io", ["-f", "qcow2", "-c", command, path]);
    const diskOf = (name: GuestName) =>
      join(onDisk(name).dir, readdirSync(onDisk(name).dir).find((file) => file.endsWith(".qcow2")) ?? "");
    const imageOf = (id: string) => join(dir.images, `${id}.qcow2`);

    test("a server boots from another one's changed disk, which was copied while it ran", async () => {
      const source = await prepared(1, NANO_IMAGE_ID);
      await driver.start(source, NEVER);
      await ticks(source);
      await driver.power(source, "stop", NEVER);
      await qemuIo(diskOf(source), `write -P 0x5a ${64 * MIB} 64k`);
      await driver.start(source, NEVER);
      await ticks(source);
      const imageId = randomUUID();
      await driver.snapshot(source, imageId, NEVER);
      expect(await driver.powersOf([source])).toEqual(["running"]);
      await qemuIo(imageOf(imageId), `read -P 0x5a ${64 * MIB} 64k`);
      expect(await runTool("qemu-img", ["info", imageOf(imageId)])).not.toContain("backing file");

      const copy = await prepared(2, imageId);
      await driver.start(copy, NEVER);
      await ticks(copy);
      await driver.power(copy, "stop", NEVER);
      await qemuIo(diskOf(copy), `read -P 0x5a ${64 * MIB} 64k`);
      expect(readdirSync(dir.images).filter((file) => file.endsWith(".part"))).toEqual([]);
    });

    test("a call that is given up leaves no image, and the next one succeeds", async () => {
      const guest = await prepared(1, NANO_IMAGE_ID);
      await driver.start(guest, NEVER);
      const imageId = randomUUID();
      await expect(driver.snapshot(guest, imageId, AbortSignal.abort())).rejects.toThrow();
      expect(readdirSync(dir.images)).toEqual([`${NANO_IMAGE_ID}.raw`]);
      await driver.snapshot(guest, imageId, NEVER);
      expect(existsSync(imageOf(imageId))).toBe(true);
    });

    test("the agent's next process ends the copy that its last one began, and begins again", async () => {
      const guest = await prepared(1, NANO_IMAGE_ID);
      await driver.start(guest, NEVER);
      const imageId = randomUUID();
      driver.close();
      // The last process had begun a copy, which is slow, and was killed.
      const part = join(dir.images, `.${imageId}.old.part`);
      const left = (await QemuGuest.load(onDisk(guest).dir))!;
      await left.change({ copiesTo: part });
      await createDisk(part, 1_024 * MIB, null);
      const file = { driver: "file", filename: part };
      await left.execute("blockdev-add", { driver: "qcow2", "node-name": "berth-copy-target", file });
      const job = { "job-id": "berth-copy", device: "disk0", target: "berth-copy-target", sync: "full", speed: 1 };
      await left.execute("blockdev-backup", { ...job, "auto-dismiss": false });
      left.detach();
      driver = qemuDriverIn(dir);
      await driver.adopt([{ ...guest, state: "running" }]);
      // The adoption does not wait for old work for longer than three seconds.
      await eventually(
        "the old copy to be gone",
        () => !readdirSync(dir.images).some((file) => file.endsWith(".part")),
      );
      await driver.snapshot(guest, imageId, NEVER);
      expect(existsSync(imageOf(imageId))).toBe(true);
      expect(await driver.powersOf([guest])).toEqual(["running"]);
    });
  },
);
