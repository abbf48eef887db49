import { parseCpuSet } from "../../core/discovery/parse-cpu-set.ts";
import { boolean, integer, type Kind, listOf, text } from "../../runtime/setting-kinds.ts";
import { optional, setting, type ValuesOf } from "../../runtime/settings.ts";

const cpuSet: Kind<readonly number[]> = {
  allowed: "CPUs as 0-7,^3 (a number, a range, or ^ before what is left out)",
  placeholder: "CPUS",
  parse: (given) => parseCpuSet(given) ?? undefined,
};
const megabytes = integer({ min: 0, max: 2 ** 31 - 1 });
const device: Kind<string> = {
  allowed: "VENDOR:PRODUCT or an address, as 8086:1572 or 0000:3b:00.0",
  placeholder: "DEVICE",
  parse: (given) =>
    /^([0-9a-f]{4}:[0-9a-f]{4}|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i.test(given)
      ? given.toLowerCase()
      : undefined,
};

/** An operator's settings for a machine that is inspected, common to the agent and `berth host inspect`. */
export const discoverySettings = {
  sysroot: optional(text(), {
    about: "read a copy of a host's /proc and /sys below this directory, not this machine's",
  }),
  flat: setting(boolean, { about: "CPU and memory in the root provider, not by NUMA node", default: "false" }),
  host: optional(text({ pattern: /^[A-Za-z0-9._-]{1,200}$/, allowed: "letters, digits, dots, - and _" }), {
    about: "name of the root provider; otherwise this machine's name, or that of the sysroot's directory",
  }),
  cpuSharedSet: optional(cpuSet, { about: "CPUs that guests share (VCPU)" }),
  cpuDedicatedSet: optional(cpuSet, { about: "CPUs that guests have for themselves (PCPU)" }),
  reservedHostCpus: setting(megabytes, { about: "VCPU that are kept for the host", default: "0" }),
  reservedHostMemoryMb: setting(megabytes, { about: "MEMORY_MB that are kept for the host", default: "512" }),
  reservedHostDiskMb: setting(megabytes, { about: "MiB of DISK_GB that are kept for the host", default: "0" }),
  instancesPath: setting(text(), {
    about: "directory of the guests' disks, whose file system is DISK_GB",
    default: "/",
  }),
  pciDevices: optional(listOf(device), {
    about: "devices for guests; otherwise virtual functions, and accelerators without a display",
  }),
  enabledMdevTypes: optional(listOf(text()), {
    about: "types of mediated devices for guests, the preferred one first",
  }),
} as const;

export type DiscoveryOptions = ValuesOf<typeof discoverySettings>;
