import type { PciDevice } from "./discover-pci.ts";
import type { HostFiles } from "./host-files.ts";
import { hostTree, type TreeOptions } from "./host-tree.ts";
import { type InspectedHost, inspectHost } from "./inspect-host.ts";
import type { TreeProvider } from "./tree-provider.ts";

export const GIB = 1024 ** 3;
export const NO_FILES: HostFiles = {
  texts: new Map(),
  entries: new Map(),
  links: new Map(),
  unread: [],
  diskBytes: null,
};
const NO_OPTIONS: TreeOptions = {
  ...{
    name: "h1",
    flat: false,
    cpuSharedSet: null,
    cpuDedicatedSet: null,
    pciDevices: null,
    mdevOffers: [],
    physicalNetworks: [],
    bandwidths: [],
  },
  ...{ reservedHostCpus: 0, reservedHostMemoryMb: 0, reservedHostDiskMb: 0 },
  ...{ initialCpuAllocationRatio: null, initialRamAllocationRatio: null, initialDiskAllocationRatio: null },
};
export const NO_DEVICE: PciDevice = {
  ...{ address: "0000:00:00.0", vendor: "8086", device: "1572", class: "020000", numaNode: null, driver: null },
  ...{ subsystemVendor: null, subsystemDevice: null, iommuGroup: null, sriov: null, physicalFunction: null },
  ...{ nics: [], mdevTypes: [], vgpu: null },
};

const ALL_CPUS = [0, 1, 2, 3, 4, 5, 6, 7];

/** A host with two nodes of 8 GiB and four CPUs each, huge pages of 1 GiB on node 0, and 100 GiB of disk. */
export function twoNodes(changes: Partial<InspectedHost> = {}): InspectedHost {
  const unknown = inspectHost(NO_FILES);
  const node = (id: number, cpus: readonly number[]) => ({ id, cpus, memoryBytes: 8 * GIB, distances: null });
  return {
    ...unknown,
    cpu: { ...unknown.cpu, online: ALL_CPUS, usable: ALL_CPUS, isolated: [] },
    numaNodes: [node(0, [0, 1, 2, 3]), node(1, [4, 5, 6, 7])],
    memoryBytes: 16 * GIB,
    diskBytes: 100 * GIB,
    hugepages: [
      {
        sizeKib: 1048576,
        total: 3,
        free: 3,
        nodes: [
          { id: 0, total: 3, free: 3 },
          { id: 1, total: 0, free: 0 },
        ],
      },
    ],
    ...changes,
  };
}

/** The host's tree, and the warnings of its making. */
export function build(host: InspectedHost, options: Partial<TreeOptions> = {}) {
  const warnings: string[] = [];
  const tree = hostTree(host, { ...NO_OPTIONS, ...options }, (warning) => void warnings.push(warning));
  return { tree, warnings };
}

/** The root of the host's tree. */
export function rootOf(host: InspectedHost, options: Partial<TreeOptions> = {}): TreeProvider {
  const { tree } = build(host, options);
  if (tree.kind !== "tree") throw new Error(tree.reason);
  return tree.root;
}

/** The inventories of the providers below the root, by name. */
export function below(root: TreeProvider): Record<string, TreeProvider["inventories"]> {
  const visit = (one: TreeProvider): [string, TreeProvider["inventories"]][] => [
    [one.name, one.inventories],
    ...(one.children ?? []).flatMap(visit),
  ];
  return Object.fromEntries(visit(root).slice(1));
}
