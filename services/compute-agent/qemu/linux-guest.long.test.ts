import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { linuxGuestFiles } from "../../../test/rigs/linux-guest.ts";
import {
  guestsOnDisk,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  qemuDriverIn,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";

const NEVER = new AbortController().signal;
const CACHE = join(import.meta.dirname, "../../../node_modules/.cache/berth-linux-guest");
const USER_DATA = 'echo "hello from user data"\n/bin/busybox cat /config/openstack/content/0000\necho\n';
const files = whyNoQemu() === null ? linuxGuestFiles(CACHE) : null;
const title = `Linux boots with its own kernel and reads its config drive${files === null ? " (skipped: no QEMU, or apt-get cannot download a kernel)" : ""}`;

test.skipIf(files === null)(title, { timeout: 120_000 }, async () => {
  const dir = makeQemuGuestsDir();
  const driver = qemuDriverIn(dir);
  try {
    copyFileSync(files?.kernel ?? "", join(dir.images, "kernel"));
    copyFileSync(files?.ramdisk ?? "", join(dir.images, "ramdisk"));
    const server = serverSpec(1, {
      ...{ name: "web", imageRef: NANO_IMAGE_ID, flavor: { ...NANO_FLAVOR, memoryMib: 128 } },
      imageProperties: { kernel_id: "kernel", ramdisk_id: "ramdisk", os_command_line: "console=ttyS0 quiet panic=-1" },
      ...{ userData: Buffer.from(USER_DATA).toString("base64"), keyName: "mine", publicKey: "ssh-ed25519 AAAA me" },
      files: [{ path: "/etc/motd", contents: Buffer.from("a file of its own").toString("base64") }],
    });
    const order = {
      host: "h1",
      serverUuid: server.uuid,
      attemptId: "task/0",
      server,
      allocation: undefined,
      movedFrom: null,
    };
    const outcome = await driver.prepare(order, { signal: NEVER, onStep: () => undefined });
    expect(outcome).toEqual({ kind: "prepared" });
    await driver.start(order, NEVER);
    const shown = () => guestsOnDisk(dir.path, server.uuid)[0]?.console ?? "";
    await eventually("the guest's boot", () => /^done$/m.test(shown()), { everyMs: 50, withinMs: 90_000 });
    expect(shown()).toMatch(/^hello from user data$/m);
    expect(shown()).toMatch(/^a file of its own$/m);
    const metadata = JSON.parse(/^meta: (.*)$/m.exec(shown())?.[1] ?? "{}") as unknown;
    expect(metadata).toMatchObject({
      ...{ uuid: server.uuid, name: "web", hostname: "web", meta: { role: "web" } },
      keys: [{ name: "mine", type: "ssh", data: "ssh-ed25519 AAAA me" }],
      files: [{ path: "/etc/motd", content_path: "/content/0000" }],
    });
  } finally {
    driver.close();
    await dir.remove();
  }
});
