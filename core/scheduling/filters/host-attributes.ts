import { resourceClass } from "../../ledger/ids.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { HostFacts } from "../host-facts.ts";

/** A host's amounts of one class: those of its root, or of all its other providers together when the root has none. */
export interface ClassSum {
  /** Capacity including the allocation ratio. */
  readonly capacity: number;
  readonly total: number;
  readonly used: number;
  readonly free: number;
  readonly ratio: number;
}

const NOTHING: ClassSum = { capacity: 0, total: 0, used: 0, free: 0, ratio: 1 };

/** Adds up one class over a host's tree. */
export function sumOfClass(view: LedgerView, root: number, name: string): ClassSum {
  const column = view.column(resourceClass(name));
  if (!column) return NOTHING;
  const slots = column.has(root) ? [root] : view.slots.descendants(root);
  const sum = { capacity: 0, total: 0, used: 0, free: 0, ratio: 0 };
  for (const slot of slots) {
    const inventory = column.at(slot);
    if (!inventory) continue;
    sum.total += inventory.total;
    sum.used += inventory.used;
    sum.free += Math.max(0, column.free[slot]!);
    sum.capacity += inventory.used + column.free[slot]!;
    sum.ratio = inventory.allocationRatio;
  }
  return sum.ratio === 0 ? NOTHING : sum;
}

type Read = (host: HostFacts, view: LedgerView) => unknown;

const MIB_PER_GIB = 1024;

/** Host attributes under the names of Nova's HostState, which JsonFilter's queries and capabilities use. */
const ATTRIBUTES: Readonly<Record<string, Read>> = {
  host: (host) => host.name,
  nodename: (host) => host.name,
  hypervisor_hostname: (host) => host.name,
  cell: (host) => host.cell,
  host_ip: (host) => host.hypervisor.hostIp || undefined,
  hypervisor_type: (host) => host.hypervisor.type || undefined,
  hypervisor_version: (host) => host.hypervisor.version || undefined,
  supported_instances: (host) => host.hypervisor.supportedInstances,
  cpu_info: (host) => host.hypervisor.cpuInfo,
  metrics: (host) => host.hypervisor.metrics,
  num_instances: (host) => host.servers.size,
  num_io_ops: (host) => host.ioOps,
  availability_zone: (host) => host.zone,
  vcpus_total: (host, view) => sumOfClass(view, host.root, "VCPU").total,
  vcpus_used: (host, view) => sumOfClass(view, host.root, "VCPU").used,
  cpu_allocation_ratio: (host, view) => sumOfClass(view, host.root, "VCPU").ratio,
  ram_allocation_ratio: (host, view) => sumOfClass(view, host.root, "MEMORY_MB").ratio,
  disk_allocation_ratio: (host, view) => sumOfClass(view, host.root, "DISK_GB").ratio,
  free_ram_mb: (host, view) => freeOf(sumOfClass(view, host.root, "MEMORY_MB")),
  total_usable_ram_mb: (host, view) => sumOfClass(view, host.root, "MEMORY_MB").total,
  free_disk_mb: (host, view) => freeOf(sumOfClass(view, host.root, "DISK_GB")) * MIB_PER_GIB,
  disk_mb_used: (host, view) => sumOfClass(view, host.root, "DISK_GB").used * MIB_PER_GIB,
  total_usable_disk_gb: (host, view) => sumOfClass(view, host.root, "DISK_GB").total,
};

/** Ignores the allocation ratio, as Nova does for these attributes. */
function freeOf({ total, used }: ClassSum): number {
  return total - used;
}

export function isHostAttribute(name: string): boolean {
  return Object.hasOwn(ATTRIBUTES, name);
}

/** Follows a path like `cpu_info`, `topology`, `cores`. Undefined when the host has no such attribute. */
export function hostAttribute(host: HostFacts, view: LedgerView, path: readonly string[]): unknown {
  const [name = "", ...rest] = path;
  let value = isHostAttribute(name) ? ATTRIBUTES[name]?.(host, view) : undefined;
  for (const key of rest) {
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, key)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return value ?? undefined;
}
