import { expect, test } from "vitest";
import { copyDisk } from "./copy-disk.ts";
import { QmpError } from "./qmp-error.ts";

const NEVER = new AbortController().signal;

/** A QEMU that copies nothing, and refuses with these words to open the file of a copy. */
const refusing = (words: string) => ({
  execute: async (command: string) => {
    if (command === "blockdev-add") throw new QmpError("refused", words);
    return [];
  },
});

test("says what to do about a QEMU that has fewer rights than the agent, and so may not open the agent's file", async () => {
  const words = "Could not open '/proc/17/fd/23': Permission denied";
  const copied = copyDisk(refusing(words), "disk0", "/proc/17/fd/23", NEVER);
  await expect(copied).rejects.toMatchObject({ name: "QemuError", message: expect.stringContaining(words) });
  await expect(copied).rejects.toThrow("stop and start the server");
});

test.each(["Could not open '/proc/17/fd/23': No such file or directory", "Image is not in qcow2 format"])(
  "passes on another reason of QEMU's for refusing the file of a copy (%s)",
  async (words) => {
    const copied = copyDisk(refusing(words), "disk0", "/proc/17/fd/23", NEVER);
    await expect(copied).rejects.toMatchObject({ name: "QmpError", message: words });
  },
);
