import { type ControlGroup, discoverControlGroup, UNKNOWN_GROUP } from "./control-group.ts";
import { type CpuTopology, discoverCpus } from "./discover-cpus.ts";
import { cpusBesideMemory, discoverMemory, type HostMemory } from "./discover-memory.ts";
import { discoverPci, type PciDevice } from "./discover-pci.ts";
import { type CpuModel, discoverCpuModel, discoverPlatform, type Platform } from "./discover-platform.ts";
import type { HostFiles } from "./host-files.ts";

const WARNINGS_MAX = 200;

/** Everything that a host's files say about it. Null means unknown, and a warning says why. */
export interface InspectedHost extends Pick<CpuTopology, "packages" | "cores" | "threads">, HostMemory, Platform {
  readonly diskBytes: number | null;
  readonly pci: readonly PciDevice[] | null;
  readonly cpu: CpuModel & Pick<CpuTopology, "online" | "usable" | "offline" | "isolated" | "coreKinds" | "siblings">;
  /** The control group of the guests, if they are processes of the agent that inspects the host. */
  readonly controlGroup: ControlGroup;
  readonly warnings: readonly string[];
}

export interface InspectOptions {
  /** The control group as it was known before. What cannot be read of it now is taken from there. */
  readonly groupBefore?: ControlGroup | undefined;
  /** Whether guests are started in the control group of the process that has read the files. By default they are. */
  readonly isGroupOfGuests?: boolean;
}

/** Reads a host's description out of a copy of its files. Pure: the same files give the same description. */
export function inspectHost(files: HostFiles, options: InspectOptions = {}): InspectedHost {
  const { groupBefore = UNKNOWN_GROUP, isGroupOfGuests = true } = options;
  const warnings = files.unread.map(({ path, reason }) => `${path} was not read: ${reason}`);
  const warn = (warning: string) => void warnings.push(warning);
  const group = isGroupOfGuests ? discoverControlGroup(files, groupBefore, warn) : UNKNOWN_GROUP;
  const limits = { group, besideMemory: cpusBesideMemory(files, group) };
  const { packages, cores, threads, ...cpus } = discoverCpus(files, limits, warn);
  const memory = discoverMemory(files, { usableCpus: cpus.usable, group }, warn);
  const pci = discoverPci(files, warn);
  const cpu = { ...discoverCpuModel(files, warn), ...cpus };
  const platform = discoverPlatform(files, warn);
  if (files.diskBytes === null) warn("the disk is unknown: the size of its file system could not be read");
  return {
    ...{ packages, cores, threads, ...memory, diskBytes: files.diskBytes, pci, cpu, controlGroup: group, ...platform },
    warnings: limited(warnings),
  };
}

function limited(warnings: readonly string[]): readonly string[] {
  if (warnings.length <= WARNINGS_MAX) return warnings;
  return [...warnings.slice(0, WARNINGS_MAX), `${warnings.length - WARNINGS_MAX} more warnings are left out`];
}
