import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { makeQemuGuestsDir, NANO_FLAVOR, qemuDriverIn, whyNoQemu } from "../../../test/rigs/qemu-guests.ts";

const NEVER = new AbortController().signal;
const CONTROL = { signal: NEVER, onStep: () => undefined };
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(
  `guests whose image names a kernel${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    test.each([
      ["that is none", { kernel_id: "text" }, "abort", /invalid kernel header/],
      ["that is a program", { kernel_id: "program" }, "abort", /PVH ELF Note/],
      ["that takes no RAM disk", { kernel_id: "text", ramdisk_id: "text" }, "abort", /too old to load a ram disk/],
      ["that this host lacks", { kernel_id: "missing" }, "reschedule", /no file of image missing/],
    ])("%s fail everywhere if no host could boot them, and leave nothing", async (_, named, failure, reason) => {
      const dir = makeQemuGuestsDir();
      onTestFinished(() => dir.remove());
      writeFileSync(join(dir.images, "text"), "this is no kernel\n".repeat(40));
      copyFileSync("/bin/sh", join(dir.images, "program"));
      const driver = qemuDriverIn(dir);
      onTestFinished(() => driver.close());
      const server = serverSpec(1, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID, imageProperties: named });
      const guest = { host: "h1", serverUuid: server.uuid, attemptId: "task-1/0" };
      const outcome = await driver.prepare({ ...guest, server, movedFrom: null, allocation: undefined }, CONTROL);
      expect(outcome).toEqual({ kind: "failed", failure, reason: expect.stringMatching(reason) });
      await driver.destroy(guest);
      expect(await driver.powersOf([guest])).toEqual(["missing"]);
    });
  },
);
