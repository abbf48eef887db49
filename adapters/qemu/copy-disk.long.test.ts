import { randomUUID } from "node:crypto";
import { readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SnapshotStore } from "../../runtime/snapshot-store.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import {
  guestsOnDisk,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  whyNoQemu,
} from "../../test/rigs/qemu-guests.ts";
import { copyDisk, guestDiskBytes } from "./copy-disk.ts";
import { createDisk, emptyDisk } from "./disk-image.ts";
import { NANO_IMAGE_ID } from "./nano-image.ts";
import { QemuGuest, type QemuMonitor } from "./qemu-guest.ts";
import { runTool } from "./run-tool.ts";

const NEVER = new AbortController().signal;
const DISK_BYTES = NANO_FLAVOR.diskGib * 1_024 ** 3;
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(
  `the copy of a disk in a directory to which another host writes${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let dir: QemuGuestsDir;
    let guest: QemuGuest;
    let part: string;
    /** A file of this machine that is no part of any image. */
    let victim: string;
    beforeEach(async () => {
      dir = makeQemuGuestsDir();
      const driver = qemuDriverIn(dir);
      const server = serverSpec(1, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID });
      const name = { host: "h1", serverUuid: server.uuid, attemptId: `${randomUUID()}/0` };
      const order = { ...name, server, movedFrom: null, allocation: undefined };
      await driver.prepare(order, { signal: NEVER, onStep: () => undefined });
      await driver.start(name, NEVER);
      driver.close();
      guest = (await QemuGuest.load(guestsOnDisk(dir.path, server.uuid)[0]!.dir))!;
      part = join(dir.images, `.${randomUUID()}.part`);
      victim = join(dir.path, "victim");
    });
    afterEach(async () => {
      guest.detach();
      await dir.remove();
    });

    /** The other host acts when the file is made, before the guest's QEMU opens it. */
    const copyWhile = (act: () => void) =>
      copied({
        execute: async (command, ...rest) => {
          if (command === "blockdev-add") act();
          return guest.execute(command, ...rest);
        },
      }).then(
        () => null,
        (error: unknown) => error as Error,
      );
    async function copied(monitor: QemuMonitor): Promise<void> {
      expect(await guestDiskBytes(monitor, "disk0")).toBe(DISK_BYTES);
      const empty = await emptyDisk(join(dir.path, "empty"), DISK_BYTES);
      const store = new SnapshotStore(dir.images, ".qcow2");
      await store.withFile(part, empty, (path) => copyDisk(monitor, "disk0", path, NEVER));
    }

    test("is the disk, and opens no file with another name meanwhile", async () => {
      expect(await copyWhile(() => undefined)).toBeNull();
      expect(await runTool("qemu-img", ["info", part])).not.toContain("backing file");
      await runTool("qemu-img", ["check", "-q", "-f", "qcow2", part]);
      expect(await guest.state()).toBe("running");
    });

    test("does not become the content of another file to which it has made a symbolic link", async () => {
      await createDisk(victim, DISK_BYTES, null);
      const before = readFileSync(victim);
      await copyWhile(() => {
        rmSync(part);
        symlinkSync(victim, part);
      });
      expect(readFileSync(victim).equals(before)).toBe(true);
    });

    test("is given up if it has made the file refer to another one, which keeps its content", async () => {
      const header = join(dir.path, "header");
      await runTool("qemu-img", [
        ...["create", "-q", "-f", "qcow2", "-o", `data_file=${victim},data_file_raw=on`, header, String(DISK_BYTES)],
      ]);
      writeFileSync(victim, "secret");
      const error = await copyWhile(() => {
        truncateSync(part, 0);
        writeFileSync(part, readFileSync(header));
      });
      expect(readFileSync(victim, "utf8")).toBe("secret");
      expect(error?.message).toContain("another host has made it keep its data in another file");
      // QEMU has closed both.
      rmSync(part);
      expect(await copyWhile(() => undefined)).toBeNull();
    });
  },
);
