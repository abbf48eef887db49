import { pageClass } from "../scheduling/request/memory-pages.ts";
import { formatNumberList } from "./format-number-list.ts";
import type { Warn } from "./host-files.ts";
import type { InspectedHost } from "./inspect-host.ts";
import { networkProvider } from "./network-bandwidth.ts";
import { type NumaNode, wholeMemoryOf } from "./numa-node.ts";
import { type DeviceProvider, type PciOffer, pciProviders } from "./pci-providers.ts";
import { spread } from "./spread.ts";
import type { TreeInventory, TreeProvider } from "./tree-provider.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

/** An operator's settings for the discovery of a host, under Nova's names. */
export interface TreeOptions extends PciOffer {
  readonly name: string;
  /** Puts CPU and memory in the root provider instead of one provider for each NUMA node. */
  readonly flat: boolean;
  /** CPUs that guests share, or null when the option is not set. */
  readonly cpuSharedSet: readonly number[] | null;
  /** CPUs that guests have for themselves, or null when the option is not set. */
  readonly cpuDedicatedSet: readonly number[] | null;
  /** Leaves CPUs of the sets out that guests cannot have, with a warning, instead of refusing the sets. */
  readonly leavesOutLostCpus?: boolean;
  readonly reservedHostCpus: number;
  readonly reservedHostMemoryMb: number;
  readonly reservedHostDiskMb: number;
  /** Ratios of inventories that the cell does not know yet, or null when the option is not set. */
  readonly initialCpuAllocationRatio: number | null;
  readonly initialRamAllocationRatio: number | null;
  readonly initialDiskAllocationRatio: number | null;
}

/** The CPUs and huge pages behind a provider that offers CPUs or memory. */
export interface TreePlace {
  /** The NUMA node, whose provider is the root's child, or null for the root. */
  readonly node: number | null;
  readonly dedicated: readonly number[];
  readonly shared: readonly number[];
  readonly pagesKib: readonly number[];
}

/** The name of a NUMA node's provider below the root. */
export function numaProviderName(node: number): string {
  return `numa${node}`;
}

export type HostTree =
  | {
      readonly kind: "tree";
      readonly root: TreeProvider;
      readonly places: readonly TreePlace[];
      readonly devices: readonly DeviceProvider[];
    }
  /** `reason` is a sentence for the operator: a CPU set names CPUs that it may not name. */
  | { readonly kind: "refused"; readonly reason: string };

/**
 * Builds the tree of resource providers of a host. Huge pages have inventories of their own besides MEMORY_MB. An unknown value makes no
 * inventory but a warning. A class with a total of 0 is left out, as in Nova.
 */
export function hostTree(host: InspectedHost, options: TreeOptions, warn: Warn): HostTree {
  const lost = lostCpus(host, options);
  const reason = (options.leavesOutLostCpus ? null : lost) ?? cpusInBothSets(options);
  if (reason !== null) return { kind: "refused", reason };
  if (lost !== null)
    warn(
      `${lost}. Meanwhile the host offers the other CPUs of its sets; an agent that is started now would refuse the sets`,
    );
  const nodes = cpuAndMemory(host, options, warn);
  const devices = pciProviders(host, options, warn);
  const disk = host.diskBytes === null ? 0 : Math.floor(host.diskBytes / GIB);
  const inventories: Record<string, TreeInventory> = inventory("DISK_GB", disk, {
    reserved: Math.ceil(options.reservedHostDiskMb / 1024),
    initialRatio: options.initialDiskAllocationRatio,
  });
  const isPlaced = new Set<TreeProvider>();
  const children = nodes.flatMap((node): readonly TreeProvider[] => {
    const below = devices
      .filter((device) => homeOf(device, host) === node.id && !options.flat)
      .map((one) => one.provider);
    for (const provider of below) isPlaced.add(provider);
    if (options.flat || node.id === null) {
      Object.assign(inventories, node.inventories);
      return [];
    }
    // The kernel also makes nodes for devices that only start transfers. Such nodes have neither memory nor CPUs.
    if (Object.keys(node.inventories).length === 0 && below.length === 0) return [];
    const traits = ["HW_NUMA_ROOT", ...node.traits];
    return [
      {
        name: numaProviderName(node.id),
        inventories: node.inventories,
        traits,
        ...(below.length > 0 ? { children: below } : {}),
      },
    ];
  });
  const others = devices.map((device) => device.provider).filter((provider) => !isPlaced.has(provider));
  const direct = devices.filter(({ functions }) => functions.SRIOV_NET_VF !== undefined);
  const directCards = new Set(direct.map(({ provider }) => provider.name));
  const network = networkProvider(host, options, { directCards, warn });
  const all = [...children, ...others, ...sevProviders(host, warn), ...(network === null ? [] : [network])];
  const ofRoot = nodes.filter((node) => options.flat || node.id === null).flatMap((node) => node.traits);
  const traits = [...new Set([...ofRoot, ...threadTraits(host, host.cpu.usable ?? [])])];
  return {
    kind: "tree",
    root: { name: options.name, inventories, traits, ...(all.length > 0 ? { children: all } : {}) },
    places: nodes.map(({ place }) => place),
    devices,
  };
}

/** The NUMA node of a device. A device of a node without memory is where that node's CPUs are. */
function homeOf({ numaNode }: DeviceProvider, { numaNodes }: InspectedHost): number | null {
  if (numaNode === null) return null;
  return numaNodes?.find((node) => node.joinedNodes?.includes(numaNode))?.id ?? numaNode;
}

/** Why guests cannot have all CPUs of the sets, or null. Nova refuses to start for such reasons. */
function lostCpus({ cpu, controlGroup }: InspectedHost, { cpuSharedSet, cpuDedicatedSet }: TreeOptions): string | null {
  for (const [name, set] of [
    ["cpu-shared-set", cpuSharedSet],
    ["cpu-dedicated-set", cpuDedicatedSet],
  ] as const) {
    const missing = set?.filter((one) => !(cpu.online?.includes(one) ?? true)) ?? [];
    if (missing.length > 0)
      return `${name} names CPUs that are not online: ${missing.join(",")}; online are ${formatNumberList(cpu.online ?? [])}`;
    const outside = set?.filter((one) => !(cpu.usable?.includes(one) ?? true)) ?? [];
    if (outside.length > 0)
      return `${name} names CPUs that the control group ${controlGroup.path} does not allow: ${formatNumberList(outside)}; it allows ${formatNumberList(cpu.usable ?? [])}, and guests are started in this group: take the others out of ${name}, or allow the group more (AllowedCPUs= of the agent's systemd unit)`;
  }
  return null;
}

function cpusInBothSets({ cpuSharedSet, cpuDedicatedSet }: TreeOptions): string | null {
  const both = cpuSharedSet?.filter((one) => cpuDedicatedSet?.includes(one)) ?? [];
  return both.length === 0
    ? null
    : `cpu-shared-set and cpu-dedicated-set both name CPUs ${both.join(",")}: name each in one of them`;
}

interface NodeOffer {
  /** Id of the NUMA node, or null for the root provider. */
  readonly id: number | null;
  readonly inventories: Readonly<Record<string, TreeInventory>>;
  readonly traits: readonly string[];
  readonly place: TreePlace;
}

/** One offer for each NUMA node, or one for the whole host. CPUs that belong to no node are offered by the root. */
function cpuAndMemory(host: InspectedHost, options: TreeOptions, warn: Warn): readonly NodeOffer[] {
  const { shared, dedicated } = cpuSets(host, options, warn);
  const places = options.flat || host.numaNodes === null ? [wholeHost(host)] : placesOf(host, host.numaNodes);
  const parts = places.map((place) => ({
    ...place,
    shared: shared.filter((cpu) => place.cpus.includes(cpu)),
    dedicated: dedicated.filter((cpu) => place.cpus.includes(cpu)),
    pages: knownPages(place, warn),
  }));
  // MEMORY_MB includes huge pages, because a guest with pages also claims their MEMORY_MB, as in Nova. If it left them out, they would
  // count twice.
  const memory = parts.map(({ memoryBytes }) => Math.floor((memoryBytes ?? 0) / MIB));
  const reservedCpus = spread(
    options.reservedHostCpus,
    parts.map((part) => part.shared.length),
  );
  const reservedMb = spread(options.reservedHostMemoryMb, memory);
  if (sum(reservedCpus) < options.reservedHostCpus && host.cpu.usable !== null)
    warn(
      `reserved-host-cpus is ${options.reservedHostCpus}, but the host has only ${sum(reservedCpus)} VCPU: all of them are reserved`,
    );
  if (sum(reservedMb) < options.reservedHostMemoryMb && host.memoryBytes !== null)
    warn(
      `reserved-host-memory-mb is ${options.reservedHostMemoryMb}, but the host has only ${sum(reservedMb)}: all of it is reserved`,
    );
  return parts.map((part, index) => ({
    id: part.id,
    inventories: {
      ...inventory("VCPU", part.shared.length, {
        reserved: reservedCpus[index],
        initialRatio: options.initialCpuAllocationRatio,
      }),
      ...inventory("PCPU", part.dedicated.length),
      ...inventory("MEMORY_MB", memory[index] ?? 0, {
        reserved: reservedMb[index],
        initialRatio: options.initialRamAllocationRatio,
      }),
      ...Object.assign({}, ...part.pages.map((page) => inventory(pageClass(page.sizeKib), page.count))),
    },
    traits: [
      ...(part.pages.some((page) => page.count > 0) ? ["CUSTOM_MEMORY_PAGES_LARGE"] : []),
      ...threadTraits(host, part.cpus),
    ],
    place: {
      node: part.id,
      ...{ dedicated: part.dedicated, shared: part.shared },
      pagesKib: part.pages.filter((page) => page.count > 0).map((page) => page.sizeKib),
    },
  }));
}

/** When only one of the two sets is given, the class of the other is left out. When none is given, all CPUs that guests can use are VCPU. */
function cpuSets({ cpu }: InspectedHost, { cpuSharedSet, cpuDedicatedSet }: TreeOptions, warn: Warn) {
  const isolated = cpu.isolated?.filter((one) => cpu.usable?.includes(one)) ?? [];
  if (cpuSharedSet !== null || cpuDedicatedSet !== null) {
    const shared = cpuSharedSet ?? [];
    const both = isolated.filter((one) => shared.includes(one));
    if (both.length > 0)
      warn(`CPUs ${both.join(",")} are isolated from the kernel's scheduler and are in cpu-shared-set`);
    return { shared, dedicated: cpuDedicatedSet ?? [] };
  }
  if (isolated.length > 0)
    warn(
      `CPUs ${isolated.join(",")} are isolated from the kernel's scheduler and count as VCPU: name them in cpu-dedicated-set`,
    );
  return { shared: cpu.usable ?? [], dedicated: [] };
}

/** Nova gives the trait to the root. Flavors ask the provider of the CPUs for it, too. */
function threadTraits({ cpu }: InspectedHost, cpus: readonly number[]): readonly string[] {
  return cpu.siblings.some((core) => core.some((one) => cpus.includes(one))) ? ["HW_CPU_HYPERTHREADING"] : [];
}

interface Place {
  readonly id: number | null;
  readonly cpus: readonly number[];
  readonly memoryBytes: number | null;
  /** A `count` of null means unknown. */
  readonly pages: readonly { readonly sizeKib: number; readonly count: number | null }[];
}

function wholeHost(host: InspectedHost): Place {
  const pages = (host.hugepages ?? []).map(({ sizeKib, total }) => ({ sizeKib, count: total }));
  return { id: null, cpus: host.cpu.usable ?? [], memoryBytes: host.memoryBytes, pages };
}

/** Divides the memory of the host among the nodes in proportion to the sizes that they report. */
function placesOf(host: InspectedHost, nodes: readonly NumaNode[]): readonly Place[] {
  const isOne = nodes.length === 1;
  const stated = nodes.map(wholeMemoryOf);
  const all = stated.includes(null) ? 0 : sum(stated.map(Number));
  const places = nodes.map((node): Place => {
    const { id, cpus } = node;
    const pages = (host.hugepages ?? []).map(({ sizeKib, total, nodes: ofNodes }) => {
      const pool = ofNodes.find((one) => one.id === id);
      return { sizeKib, count: isOne ? total : (pool?.total ?? null) };
    });
    const ofNode = wholeMemoryOf(node);
    const share = all === 0 || host.memoryBytes === null ? null : (host.memoryBytes / all) * (ofNode ?? 0);
    const memory = isOne ? host.memoryBytes : (share ?? ofNode);
    return { id, cpus: cpus ?? [], memoryBytes: memory, pages };
  });
  const ofNodes = new Set(nodes.flatMap((node) => node.cpus ?? []));
  const others = host.cpu.usable?.filter((cpu) => !ofNodes.has(cpu)) ?? [];
  return others.length === 0 ? places : [...places, { id: null, cpus: others, memoryBytes: 0, pages: [] }];
}

function knownPages({ id, pages }: Place, warn: Warn): readonly { readonly sizeKib: number; readonly count: number }[] {
  return pages.map(({ sizeKib, count }) => {
    const where = id === null ? "" : ` by NUMA node ${id}`;
    if (count === null) warn(`huge pages of ${sizeKib} KiB are not reported${where}: their number is unknown`);
    return { sizeKib, count: count ?? 0 };
  });
}

/** Providers for guests whose memory AMD's SEV encrypts, as in Nova. */
function sevProviders({ sev }: InspectedHost, warn: Warn): readonly TreeProvider[] {
  if (sev.sev !== true) return [];
  if (sev.sevGuestsMax === null) {
    warn("SEV is not reported: /sys/fs/cgroup/misc.capacity does not say how many guests it supports");
    return [];
  }
  const inventories = inventory("MEM_ENCRYPTION_CONTEXT", sev.sevGuestsMax);
  if (inventories.MEM_ENCRYPTION_CONTEXT === undefined) return [];
  const offered = { MEM_ENCRYPTION_CONTEXT: { ...inventories.MEM_ENCRYPTION_CONTEXT, max_unit: 1 } };
  return [{ name: "amd_sev", inventories: offered, traits: ["HW_CPU_X86_AMD_SEV"] }];
}

function inventory(
  resourceClass: string,
  total: number,
  more: { readonly reserved?: number | undefined; readonly initialRatio?: number | null } = {},
): Record<string, TreeInventory> {
  if (total <= 0) return {};
  const { reserved = 0, initialRatio = null } = more;
  return {
    [resourceClass]: {
      total,
      ...(reserved > 0 && { reserved: Math.min(reserved, total) }),
      ...(initialRatio !== null && { initial_allocation_ratio: initialRatio }),
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
