import type { HostDevice } from "./host-device.ts";

/** Memory of a guest: all of it, or that of one of the guest's NUMA nodes. */
export interface PinnedMemory {
  readonly memoryMib: number;
  /** The host's NUMA node that its claim names, or null when it is unknown. */
  readonly hostNode: number | null;
}

/** Which CPUs, which memory and which devices of its host a guest uses. It is chosen once, when the guest is built, and stays until the guest is gone. */
export interface GuestPinning {
  /** The host's CPUs on which each vCPU may run, in the order of the vCPUs. An empty list means all CPUs. */
  readonly vcpus: readonly (readonly number[])[];
  /** The host's CPUs that no other guest may have. */
  readonly held: readonly number[];
  /** The host's CPUs for the hypervisor's other threads. An empty list means all CPUs. */
  readonly emulator: readonly number[];
  /** One entry for each NUMA node that the guest sees, or a single one for a guest that sees none. */
  readonly memory: readonly PinnedMemory[];
  /** Whether the memory is bound to these nodes of the host. */
  readonly isBound: boolean;
  /** The size of the huge pages of the guest's memory in KiB, or null for ordinary pages. */
  readonly pageKib: number | null;
  /** The host's devices that the guest has for itself. Absent when it has none. */
  readonly devices?: readonly HostDevice[] | undefined;
}

/** Whether the guest may run on every CPU, use any memory and has no devices of the host, so that there is nothing to do for it. */
export function isUnpinned({ vcpus, emulator, isBound, pageKib, devices = [] }: GuestPinning): boolean {
  const isFree = (cpus: readonly number[]) => cpus.length === 0;
  return devices.length === 0 && pageKib === null && isFree(emulator) && vcpus.every(isFree) && !isBound;
}
