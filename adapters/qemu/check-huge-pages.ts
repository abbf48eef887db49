import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { GuestPinning } from "../../core/pinning/guest-pinning.ts";
import { QemuError } from "./qemu-error.ts";

/**
 * Refuses to start a guest for whose memory the host has too few free huge pages, for example because it has fewer of them since it was restarted. `root` is `/`,
 * or a copy of a host's files. If the number cannot be read, QEMU finds out itself.
 */
export function checkHugePages({ pageKib, memory, isBound }: GuestPinning, root: string): void {
  if (pageKib === null) return;
  const needed = new Map<number | null, number>();
  for (const { memoryMib, hostNode } of memory) {
    const node = isBound ? hostNode : null;
    needed.set(node, (needed.get(node) ?? 0) + Math.ceil((memoryMib * 1_024) / pageKib));
  }
  for (const [node, pages] of needed) {
    const above = node === null ? "sys/kernel/mm" : `sys/devices/system/node/node${node}`;
    const free = countIn(join(root, above, `hugepages/hugepages-${pageKib}kB/free_hugepages`));
    if (free === null || free >= pages) continue;
    const where = node === null ? "" : ` on NUMA node ${node}`;
    throw new QemuError(
      "unavailable",
      `the guest needs ${pages} huge pages of ${pageKib} KiB${where}, and the host has ${free} free ones: raise nr_hugepages of this size, as it was when the guest was built`,
    );
  }
}

function countIn(path: string): number | null {
  try {
    const text = readFileSync(path, "utf8").trim();
    return /^\d+$/.test(text) ? Number(text) : null;
  } catch {
    return null;
  }
}
