import type { DevicePlace } from "./host-device.ts";

/** What one resource provider of a machine stands for, in the machine's own numbers. */
export interface ProviderPlace {
  /** The provider's UUID. */
  readonly provider: string;
  /** The NUMA node, or null when the provider stands for the whole machine. */
  readonly node: number | null;
  /** CPUs that a guest has for itself (PCPU). */
  readonly dedicated: readonly number[];
  /** CPUs over which guests without dedicated CPUs float (VCPU). Null when they may use every CPU of the machine. */
  readonly shared: readonly number[] | null;
  /** The sizes of the huge pages that the provider has, in KiB. */
  readonly pagesKib: readonly number[];
}

/** The CPUs and NUMA nodes of a machine behind its resource providers. */
export interface MachineLayout {
  readonly places: readonly ProviderPlace[];
  /** The CPUs (hardware threads) of each core that has several. */
  readonly cores: readonly (readonly number[])[];
  /** The devices behind its providers. Absent when the machine offers none. */
  readonly devices?: readonly DevicePlace[] | undefined;
  /** The classes of its own that the operator has given devices, whether or not the machine has such devices now. Absent when there are none. */
  readonly deviceClasses?: readonly string[] | undefined;
  /** The UUIDs of the providers that the machine's PCI devices have, or would have if they were offered. Absent when they are unknown. */
  readonly deviceProviders?: readonly string[] | undefined;
}
