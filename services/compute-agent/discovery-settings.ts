import type { InterfaceBandwidth } from "../../core/discovery/network-bandwidth.ts";
import { parseCpuSet } from "../../core/discovery/parse-cpu-set.ts";
import type { DeviceSpecification } from "../../core/discovery/pci-providers.ts";
import type { PhysicalNetwork } from "../../core/discovery/physical-network-trait.ts";
import { boolean, directory, float, integer, type Kind, listOf, text } from "../../runtime/setting-kinds.ts";
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
/** The classes that a specification may give devices. Those of huge pages mean something else. */
const CUSTOM_CLASS = "CUSTOM_(?!MEMORY_PAGES_)[A-Z0-9_]{1,240}";
const DEVICE_CLASS = new RegExp(`^(PGPU|FPGA|PCI_DEVICE|${CUSTOM_CLASS})$`);
const MDEV_CLASS = new RegExp(`^(VGPU|${CUSTOM_CLASS})$`);
const DEVICE_TRAIT = /^(HW|CUSTOM)_[A-Z0-9_]{1,240}$/;
const ADDRESS = /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/i;
const device: Kind<DeviceSpecification> = {
  allowed:
    "VENDOR:PRODUCT or an address, like 8086:1572 or 0000:3b:00.0, and =CLASS+TRAIT… with PGPU, FPGA, PCI_DEVICE or CUSTOM_… and traits HW_… or CUSTOM_…, like 10de:2204=PGPU+CUSTOM_A100",
  placeholder: "DEVICE",
  parse: (given) => {
    const [, name, resourceClass = null, more = ""] = DEVICE.exec(given) ?? [];
    if (name === undefined || (resourceClass !== null && !DEVICE_CLASS.test(resourceClass))) return undefined;
    const traits = more.split("+").slice(1);
    if (!traits.every((one) => DEVICE_TRAIT.test(one))) return undefined;
    return { device: name.toLowerCase(), resourceClass, traits };
  },
};

/** What an operator says of a type of mediated devices. */
export interface OfMdevType<Value> {
  readonly type: string;
  readonly value: Value;
}

/** `TYPE=VALUE`. `parse` returns undefined for a value that is not allowed. */
function ofMdevType<Value>(
  allowed: string,
  placeholder: string,
  parse: (value: string) => Value | undefined,
): Kind<OfMdevType<Value>> {
  return {
    allowed,
    placeholder: `TYPE=${placeholder}`,
    parse: (given) => {
      const [, type, text = ""] = /^([^=,\s]{1,100})=(.+)$/.exec(given) ?? [];
      const value = parse(text);
      return type === undefined || value === undefined ? undefined : { type, value };
    },
  };
}

/** Values that are joined by a plus sign, since a comma separates types. */
const eachOf =
  (pattern: RegExp) =>
  (given: string): readonly string[] | undefined => {
    const parts = given.split("+");
    return parts.every((part) => pattern.test(part)) ? parts : undefined;
  };

const mdevClass = ofMdevType("TYPE=CLASS with VGPU or CUSTOM_…, like nvidia-35=CUSTOM_VGPU_SMALL", "CLASS", (given) =>
  MDEV_CLASS.test(given) ? given : undefined,
);
const mdevTraits = ofMdevType(
  "TYPE=TRAIT+TRAIT… with traits HW_… or CUSTOM_…, like nvidia-35=CUSTOM_A100",
  "TRAITS",
  eachOf(DEVICE_TRAIT),
);
const mdevLimit = ofMdevType("TYPE=N with a number from 1 to 65535, like nvidia-35=8", "N", (given) => {
  const count = /^\d{1,5}$/.test(given) ? Number(given) : 0;
  return count >= 1 && count <= 65_535 ? count : undefined;
});
const mdevAddresses = ofMdevType(
  "TYPE=ADDRESS+ADDRESS… with the addresses of cards, like nvidia-35=0000:84:00.0+0000:85:00.0",
  "ADDRESSES",
  (given) => eachOf(ADDRESS)(given)?.map((address) => address.toLowerCase()),
);

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

const KBPS_MAX = 2 ** 31 - 1;
const bandwidth: Kind<InterfaceBandwidth> = {
  allowed: `INTERFACE for the interface's speed, or INTERFACE:EGRESS:INGRESS with up to ${KBPS_MAX} kilobits a second, each of which may be missing, like ens1f0:10000000:10000000`,
  placeholder: "INTERFACE:EGRESS:INGRESS",
  parse: (given) => {
    const [, interfaceName, numbers, egress = "", ingress = ""] =
      /^([A-Za-z0-9._-]{1,15})(:(\d{0,10}):(\d{0,10}))?$/.exec(given) ?? [];
    if (interfaceName === undefined) return undefined;
    if (numbers === undefined) return { interfaceName, stated: null };
    const stated = { egressKbps: Number(egress), ingressKbps: Number(ingress) };
    return Math.max(stated.egressKbps, stated.ingressKbps) > KBPS_MAX ? undefined : { interfaceName, stated };
  },
};

/** An operator's settings for a machine that is inspected, common to the agent and `berth host inspect`. */
export const discoverySettings = {
  sysroot: optional(directory, {
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
  instancesPath: setting(directory, {
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
  // The options `mdev_class`, `max_instances` and `device_addresses` of Nova's sections [mdev_TYPE].
  mdevClasses: optional(listOf(mdevClass), { about: "resource class of a type's mediated devices; by default VGPU" }),
  mdevTraits: optional(listOf(mdevTraits), { about: "traits of the cards that are divided into a type" }),
  mdevMaxInstances: optional(listOf(mdevLimit), {
    about: "how many devices of a type all cards of the host offer together; by default as many as they can have",
  }),
  mdevDeviceAddresses: optional(listOf(mdevAddresses), {
    about:
      "addresses of the cards that are divided into a type; a type without addresses is for the cards that no type names",
  }),
  // The option `physical_device_mappings` of Neutron's SR-IOV agent.
  physicalNetworks: optional(listOf(physicalNetwork), {
    about: "Neutron's physical networks with the cards whose virtual functions are connected to them; a card has one",
  }),
  // The option of the same name of Neutron's agents.
  resourceProviderBandwidths: optional(listOf(bandwidth), {
    about:
      "network interfaces of --physical-networks whose bandwidth servers can claim (NET_BW_EGR_KILOBIT_PER_SEC and _IGR_); only in clouds without Neutron, whose agents report it themselves",
  }),
} as const;

export type DiscoveryOptions = ValuesOf<typeof discoverySettings>;
