import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { DiskCopy } from "../../../adapters/qemu/transfer.ts";
import type { MachineDisk } from "../../../adapters/qemu/virtual-machine.ts";

/**
 * Which of a guest's disks is copied to which disk of the guest at the destination. After a resize, the other flavor may have other disks: each is copied to
 * the one that is the same in both flavors, and what was swapped out of a guest's memory is given up with its swap disk. Throws a QemuError if the
 * destination has no place for a disk with data. Where one side does not know what its disks are, because it is older, disks of the same name are the same.
 */
export function pairDisks(own: readonly MachineDisk[], roles: string): readonly DiskCopy[] {
  if (roles === "" || own.some(({ role }) => role === undefined))
    return own.map(({ node, role }) => ({ node, toNode: node, isDispensable: role === "swap" }));
  const theirs = new Map(roles.split(",").map((text) => [text.split(":")[1] ?? "", text.split(":")[0] ?? ""]));
  return own.flatMap(({ node, role = "root" }) => {
    const toNode = theirs.get(role);
    if (toNode !== undefined) return [{ node, toNode, isDispensable: role === "swap" }];
    if (role === "swap") return [];
    throw new QemuError(
      "state",
      `the server has the disk "${role}" with data, and the new flavor has none: choose a flavor with such a disk that is at least as large`,
    );
  });
}
