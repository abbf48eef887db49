import { randomUUID } from "node:crypto";
import { chmodSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { DamagedCopy } from "../../../adapters/qemu/image-cache.ts";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  guestsOnDisk,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  otherNanoImage,
  type QemuGuestsDir,
  qemuDriverIn,
  qemusBelow,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { GuestName } from "../journal.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(
  `guests whose image was changed on their host${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let dir: QemuGuestsDir;
    let driver: QemuDriver;
    let damaged: DamagedCopy[];
    beforeEach(() => {
      dir = makeQemuGuestsDir();
      damaged = [];
      driver = qemuDriverIn(dir, { onDamaged: (copy) => damaged.push(copy) });
    });
    afterEach(async () => {
      driver.close();
      await dir.remove();
    });

    async function stopped(): Promise<GuestName> {
      const server = serverSpec(1, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID });
      const name = { host: "h1", serverUuid: server.uuid, attemptId: `${randomUUID()}/0` };
      const order = { ...name, server, movedFrom: null, allocation: undefined };
      expect(await driver.prepare(order, { signal: NEVER, onStep: () => undefined })).toEqual({ kind: "prepared" });
      await driver.start(name, NEVER);
      await eventually("the guest to tick", () => ticksOf(name) > 0);
      await driver.power(name, "stop", NEVER);
      return name;
    }
    const guestOf = ({ serverUuid }: GuestName) => guestsOnDisk(dir.path, serverUuid)[0]!;
    const ticksOf = (name: GuestName) => guestOf(name).ticks.length;
    /** The copy of the image below the guests' disks becomes that of a guest that prints `R` for `T`. */
    function change(): string {
      const cache = join(dir.instancesPath, "_base");
      const copy = readdirSync(cache).find((name) => name.startsWith(`${NANO_IMAGE_ID}-`) && !name.endsWith(".json"));
      const path = join(cache, copy ?? "");
      chmodSync(path, 0o600);
      writeFileSync(path, otherNanoImage());
      return path;
    }

    test("are booted from the right content, which is copied again", async () => {
      const guest = await stopped();
      const before = ticksOf(guest);
      const path = change();
      await driver.power(guest, "start", NEVER);
      await eventually("the guest to tick again", () => ticksOf(guest) > before);
      expect([damaged, guestOf(guest).console.includes("R0001")]).toEqual([[{ imageId: NANO_IMAGE_ID, path }], false]);
    });

    test("are not booted while the right content is nowhere, and are booted when the image's file is there again", async () => {
      const guest = await stopped();
      const before = ticksOf(guest);
      change();
      const [file, away] = [`${NANO_IMAGE_ID}.raw`, "away"].map((name) => join(dir.images, name)) as [string, string];
      renameSync(file, away);
      for (const verb of ["start", "hard-reboot"] as const)
        await expect(driver.power(guest, verb, NEVER)).rejects.toThrow(
          /the guest's disk is built on .*, which was changed or cannot be read on this host, and it cannot be made again: this host has .*no file of image/,
        );
      expect([qemusBelow(dir.path), damaged.length]).toEqual([[], 1]);
      renameSync(away, file);
      await driver.power(guest, "start", NEVER);
      await eventually("the guest to tick again", () => ticksOf(guest) > before);
    });
  },
);
