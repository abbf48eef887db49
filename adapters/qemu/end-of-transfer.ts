import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { QemuError } from "./qemu-error.ts";
import type { QemuGuest } from "./qemu-guest.ts";
import { nullIfGone } from "./running-qemu.ts";

const POLL_MS = 20;
/** The thread that reads what the destination of a transfer says. QEMU gives its threads names because it is started with `debug-threads`. */
const RETURN_PATH = "return path";
const ENDED_MS = 10_000;

/**
 * Resolves when nothing of the guest's last transfer of memory is left in its QEMU, which is a moment after QEMU has called the transfer cancelled or failed. Up to version
 * 8.1 QEMU crashes if memory is transferred or saved again before, because the last transfer's thread then closes what belongs to the new one.
 * Rejects with a QemuError if that thread does not end.
 */
export async function endOfTransfer(guest: Pick<QemuGuest, "process">, withinMs = ENDED_MS): Promise<void> {
  for (let waited = 0; ; waited += POLL_MS) {
    const running = guest.process();
    if (running === null || !(await threadNames(running.pid)).includes(RETURN_PATH)) return;
    if (waited >= withinMs)
      throw new QemuError(
        "state",
        `QEMU has not ended the guest's last transfer within ${withinMs / 1_000} s, and would crash if another one began: repeat this later, or stop and start the server first`,
      );
    await delay(POLL_MS);
  }
}

/** The names of the threads of a process. A thread that ends meanwhile has none, and neither has a process that is gone. */
async function threadNames(pid: number): Promise<readonly string[]> {
  const threads = (await readdir(`/proc/${pid}/task`).catch(nullIfGone)) ?? [];
  const nameOf = async (thread: string) =>
    (await readFile(`/proc/${pid}/task/${thread}/comm`, "utf8").catch(nullIfGone)) ?? "";
  return (await Promise.all(threads.map(nameOf))).map((name) => name.trim());
}
