import { parseCpuSet } from "../../core/discovery/parse-cpu-set.ts";
import type { DeviceSpecification, PhysicalNetwork } from "../../core/discovery/pci-providers.ts";
import { boolean, float, integer, type Kind, listOf, text } from "../../runtime/setting-kinds.ts";
import { optional, setting, type ValuesOf } from "../../runtime/settings.ts";

const cpuSet: Kind<readonly number[]> = {
  allowed: "CPUs like 0-7,^3 (numbers and ranges; ^ excludes)",
  placeholder: "CPUS",
  parse: (given) => parseCpuSet(given) ?? undefined,
};
const megabytes = integer({ min: 0, max: 2 ** 31 - 1 });
/** Nova allows 0 for "not set". Here the option is left out instead, since a ratio of 0 would offer nothing. */
const ratio = float({ min: 0.001, max: 1_000_000 });
const DEVICE = /^([0-9a-f]{4}:[0-9a-f]{4}|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?:=([^+]*)((?:\+[^+]*)*))?$/i;
/** The classes that a specification may give devices. They are among those for which guests get devices (`claimedDevices`): a claim of another class would get none. */
const DEVICE_CLASS = /^(PGPU|FPGA|PCI_DEVICE|CUSTOM_PCI_[A-Z0-9_]{1,200})$/;
const DEVICE_TRAIT = /^(HW|CUSTOM)_[A-Z0-9_]{1,240}$/;
const device: Kind<DeviceSpecification> = {
  allowed:
    "VENDOR:PRODUCT or an address, like 8086:1572 or 0000:3b:00.0, and =CLASS+TRAIT… with PGPU, FPGA, PCI_DEVICE or CUSTOM_PCI_… and traits HW_… or CUSTOM_…, like 10de:2204=PGPU+CUSTOM_A100",
  placeholder: "DEVICE",
  parse: (given) => {
    const [, name, resourceClass = null, more = ""] = DEVICE.exec(given) ?? [];
    if (name === undefined || (resourceClass !== null && !DEVICE_CLASS.test(resourceClass))) return undefined;
    const traits = more.split("+").slice(1);
    if (!traits.every((one) => DEVICE_TRAIT.test(one))) return undefined;
    return { device: name.toLowerCase(), resourceClass, traits };
  },
};

const physicalNetwork: Kind<PhysicalNetwork> = {
  allowed: "NETWORK:CARD with the card's network interface or address, like physnet1:ens1f0 or physnet1:0000:3b:00.0",
  placeholder: "NETWORK:CARD",
  parse: (given) => {
    const [, name, card] =
      /^([^:,\s]{1,64}):([A-Za-z0-9._-]{1,15}|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i.exec(given) ?? [];
    if (name === undefined || card === undefined) return undefined;
    return { name, card: card.includes(":") ? card.toLowerCase() : card };
  },
};

/** An operator's settings for a machine that is inspected, common to the agent and `berth host inspect`. */
export const discoverySettings = {
  sysroot: optional(text(), {
    about: "directory with a copy of a host's /proc and /sys, which are read instead of this machine's",
  }),
  flat: setting(boolean, {
    about: "put CPU and memory into the root provider instead of one provider for each NUMA node",
    default: "false",
  }),
  host: optional(text({ pattern: /^[A-Za-z0-9._-]{1,200}$/, allowed: "letters, digits, dots, - and _" }), {
    about: "name of the root provider; by default this machine's name, or that of the sysroot's directory",
  }),
  cpuSharedSet: optional(cpuSet, { about: "CPUs that guests share (VCPU)" }),
  cpuDedicatedSet: optional(cpuSet, { about: "CPUs that guests use exclusively (PCPU)" }),
  reservedHostCpus: setting(megabytes, { about: "VCPU reserved for the host", default: "0" }),
  reservedHostMemoryMb: setting(megabytes, { about: "MEMORY_MB reserved for the host", default: "512" }),
  reservedHostDiskMb: setting(megabytes, { about: "MiB of DISK_GB reserved for the host", default: "0" }),
  initialCpuAllocationRatio: optional(ratio, {
    about: "ratio of VCPU when the host, or one of its NUMA nodes, is first stored; by default 1",
  }),
  initialRamAllocationRatio: optional(ratio, { about: "ratio of MEMORY_MB when it is first stored; by default 1" }),
  initialDiskAllocationRatio: optional(ratio, { about: "ratio of DISK_GB when it is first stored; by default 1" }),
  instancesPath: setting(text(), {
    about: "directory of the guests' disks; the size of its file system is DISK_GB",
    default: "/",
  }),
  pciDevices: optional(listOf(device), {
    about:
      "devices for guests, each with the resource class and the traits that it shall have; by default virtual functions, and accelerators without a display",
  }),
  enabledMdevTypes: optional(listOf(text()), {
    about: "types of mediated devices for guests, the preferred one first",
  }),
  // The option `physical_device_mappings` of Neutron's SR-IOV agent.
  physicalNetworks: optional(listOf(physicalNetwork), {
    about: "Neutron's physical networks with the cards whose virtual functions are connected to them; a card has one",
  }),
} as const;

export type DiscoveryOptions = ValuesOf<typeof discoverySettings>;
