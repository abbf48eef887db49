import { providerUuid, resourceClass } from "../../../../core/ledger/ids.ts";
import type { CellPort } from "../../ports.ts";

/** The capacity and use of a host's provider tree, for the classes that the Compute API shows. */
export interface HostUsage {
  readonly vcpus: number;
  readonly vcpusUsed: number;
  readonly memoryMib: number;
  readonly memoryMibUsed: number;
  readonly diskGib: number;
  readonly diskGibUsed: number;
}

export const NO_HOST_USAGE: HostUsage = {
  ...{ vcpus: 0, vcpusUsed: 0, memoryMib: 0, memoryMibUsed: 0, diskGib: 0, diskGibUsed: 0 },
};

const CPU_CLASSES = ["VCPU", "PCPU"].map(resourceClass);
const MEMORY = resourceClass("MEMORY_MB");
const DISK = resourceClass("DISK_GB");

/** Sums over the tree in a ledger view; all zero for a tree that the view does not know (yet). Cost: the tree's providers. */
export function readUsage(view: NonNullable<CellPort["view"]>, rootProvider: string): HostUsage {
  const slots = view.tree(providerUuid(rootProvider)).map((uuid) => view.slots.find(uuid));
  const sum = (classes: readonly ReturnType<typeof resourceClass>[]) => {
    let total = 0;
    let used = 0;
    for (const name of classes) {
      const column = view.column(name);
      if (column === undefined) continue;
      for (const slot of slots) {
        total += column.total[slot] ?? 0;
        used += column.used[slot] ?? 0;
      }
    }
    return { total, used };
  };
  const [cpu, memory, disk] = [sum(CPU_CLASSES), sum([MEMORY]), sum([DISK])];
  return {
    vcpus: cpu.total,
    vcpusUsed: cpu.used,
    memoryMib: memory.total,
    memoryMibUsed: memory.used,
    diskGib: disk.total,
    diskGibUsed: disk.used,
  };
}
