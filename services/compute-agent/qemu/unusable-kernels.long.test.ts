import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { uploadedName } from "../../../runtime/find-image-file.ts";
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
      ["that an operator has put there", { kernel_id: "operators" }, "reschedule", /invalid kernel header/],
      [
        "with such a RAM disk",
        { kernel_id: "text", ramdisk_id: "operators" },
        "reschedule",
        /too old to load a ram disk/,
      ],
      ["that is empty", { kernel_id: "nothing" }, "abort", /could not load kernel/],
      ["that this host lacks", { kernel_id: "missing" }, "reschedule", /no file of image missing/],
    ])(
      "%s fail everywhere if no host could boot them and the cloud knows their content, and leave nothing",
      async (_, named, failure, reason) => {
        const dir = makeQemuGuestsDir();
        onTestFinished(() => dir.remove());
        const text = Buffer.from("this is no kernel\n".repeat(40));
        writeFileSync(join(dir.images, "operators"), text);
        const stored = { text, program: readFileSync("/bin/sh"), nothing: "" };
        for (const [id, bits] of Object.entries(stored))
          writeFileSync(join(dir.images, uploadedName(id, createHash("sha512").update(bits).digest("hex"))), bits);
        const driver = qemuDriverIn(dir);
        onTestFinished(() => driver.close());
        const server = serverSpec(1, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID, imageProperties: named });
        const guest = { host: "h1", serverUuid: server.uuid, attemptId: "task-1/0" };
        const outcome = await driver.prepare({ ...guest, server, movedFrom: null, allocation: undefined }, CONTROL);
        expect(outcome).toEqual({ kind: "failed", failure, reason: expect.stringMatching(reason) });
        await driver.destroy(guest);
        expect(await driver.powersOf([guest])).toEqual(["missing"]);
      },
    );
  },
);
