import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually } from "../../test/rigs/eventually.ts";
import { guestRecord } from "../../test/rigs/guest-record.ts";
import { lastError, QemuGuest } from "./qemu-guest.ts";
import { GUEST_FILES } from "./virtual-machine.ts";

test("a QEMU whose monitor cannot be used is ended, instead of running on for a guest that was never built", async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-guest-")));
  const program = join(dir, "qemu");
  writeFileSync(program, "#!/bin/bash\nexec -a qemu-system-x86_64 sleep 60\n");
  chmodSync(program, 0o755);
  const server = createServer((socket) => socket.end("this is no monitor\r\n"));
  try {
    const guest = await QemuGuest.create(dir, guestRecord());
    const booted = guest.boot(program, { isReceiving: false, hasDevices: true });
    booted.catch(() => undefined);
    // Before that, the files of an earlier QEMU are removed.
    await eventually("the process", () => guest.process() !== null);
    server.listen(join(dir, GUEST_FILES.monitor));
    await expect(booted).rejects.toThrow();
    await eventually("the end of the process", () => guest.process() === null);
  } finally {
    server.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

test.each([
  ["", null],
  ["Killed\n", "Killed"],
  [
    'qemu-system-x86_64: warning: TCG\nqemu-system-x86_64: -device virtio-blk-pci: Failed to get "write" lock\nIs another process using the image [disk0.qcow2]?\n',
    'qemu-system-x86_64: -device virtio-blk-pci: Failed to get "write" lock Is another process using the image [disk0.qcow2]?',
  ],
])("the last error in %j is %j", (output, error) => {
  expect(lastError(output)).toBe(error);
});
