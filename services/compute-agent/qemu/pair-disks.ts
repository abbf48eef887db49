import type { DiskCopy } from "../../../adapters/qemu/disk-mirrors.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { DiskRole, MachineDisk } from "../../../adapters/qemu/virtual-machine.ts";

/**
 * Which of a guest's disks is copied to which disk of the guest at the destination. After a resize, the other flavor may have other disks: each is copied to
 * the one with the same role, and what was swapped out of a guest's memory is given up with its swap disk. Throws a QemuError if the
 * destination has no place for a disk with data. If the destination does not know what its disks are, because its agent is older, disks of the same name are the same.
 *
 * In a guest that was built before roles were recorded, the only disk beside the root disk may be either an ephemeral or a swap disk. It is copied to the
 * ephemeral disk, and to a swap disk only if that has the same size, as in a move without a resize.
 */
export function pairDisks(own: readonly MachineDisk[], roles: string | null): readonly DiskCopy[] {
  if (roles === null) return own.map(({ node, role }) => ({ node, toNode: node, isDispensable: role === "swap" }));
  const theirs = new Map(roles.split(",").map((text) => [text.split(":")[1] ?? "", text.split(":")[0] ?? ""]));
  return own.flatMap((disk): readonly DiskCopy[] => {
    const { node } = disk;
    const role = disk.role ?? roleByPlace(node, own);
    if (role === null) {
      const ephemeral = theirs.get("ephemeral");
      const toNode = ephemeral ?? theirs.get("swap");
      if (toNode === undefined) throw noPlace(node);
      return [{ node, toNode, isDispensable: false, onlySameSize: ephemeral === undefined }];
    }
    const toNode = theirs.get(role);
    if (toNode !== undefined) return [{ node, toNode, isDispensable: role === "swap" }];
    if (role === "swap") return [];
    throw noPlace(role);
  });
}

/** What a disk is by the order in which disks are made: the root disk, the ephemeral one, the swap disk. Null if it may be either of the last two. */
function roleByPlace(node: string, own: readonly MachineDisk[]): DiskRole | null {
  if (node === "disk0") return "root";
  if (!own.some((disk) => disk.node === "disk2")) return null;
  return node === "disk1" ? "ephemeral" : "swap";
}

const noPlace = (disk: string): QemuError =>
  new QemuError(
    "state",
    `the server has the disk "${disk}" with data, and the new flavor has none: choose a flavor with such a disk that is at least as large`,
  );
