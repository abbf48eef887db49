import { expect, test } from "vitest";
import type { HostFiles } from "./host-files.ts";
import { hostTree } from "./host-tree.ts";
import { type InspectedHost, inspectHost } from "./inspect-host.ts";
import { keepKnown } from "./keep-known.ts";
import type { TreeProvider } from "./tree-provider.ts";

const CPU = "/sys/devices/system/cpu";
const NODE = "/sys/devices/system/node";
const PCI = "/sys/bus/pci/devices";
const CARD = `${PCI}/0000:3b:00.0`;
const files = {
  "/proc/meminfo": "MemTotal: 4194304 kB\n",
  [`${CPU}/online`]: "0-3\n",
  [`${NODE}/node0/meminfo`]: "Node 0 MemTotal: 4194304 kB\n",
  [`${NODE}/node0/cpulist`]: "0-3\n",
  "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "16\n",
  [`${CARD}/vendor`]: "0x8086\n",
  [`${CARD}/device`]: "0x1572\n",
  [`${CARD}/class`]: "0x120000\n",
};

function lookAt(
  texts: Readonly<Record<string, string>>,
  diskBytes: number | null = 10 * 1024 ** 3,
  unread: HostFiles["unread"] = [],
): InspectedHost {
  const entries = new Map<string, string[]>();
  for (const path of Object.keys(texts)) {
    const parts = path.split("/");
    for (let end = parts.length - 1; end > 1; end -= 1) {
      const directory = parts.slice(0, end).join("/");
      const names = entries.get(directory) ?? [];
      if (!names.includes(parts[end]!)) entries.set(directory, [...names, parts[end]!]);
    }
  }
  const host: HostFiles = { texts: new Map(Object.entries(texts)), entries, links: new Map(), unread, diskBytes };
  return inspectHost(host);
}

function treeOf(host: InspectedHost, { flat }: { readonly flat: boolean }): TreeProvider {
  const tree = hostTree(
    host,
    {
      ...{ name: "h", flat, cpuSharedSet: null, cpuDedicatedSet: null, reservedHostCpus: 0 },
      ...{
        reservedHostMemoryMb: 0,
        reservedHostDiskMb: 0,
        pciDevices: null,
        mdevOffers: [],
        physicalNetworks: [],
        bandwidths: [],
      },
      ...{ initialCpuAllocationRatio: null, initialRamAllocationRatio: null, initialDiskAllocationRatio: null },
    },
    () => {},
  );
  if (tree.kind === "refused") throw new Error(tree.reason);
  return tree.root;
}

function totals(host: InspectedHost): Record<string, number> {
  const root = treeOf(host, { flat: true });
  const all = [root, ...(root.children ?? [])].flatMap(({ inventories }) => Object.entries(inventories));
  return Object.fromEntries(all.map(([name, { total }]) => [name, total]));
}

const ALL = { VCPU: 4, MEMORY_MB: 4096, DISK_GB: 10, CUSTOM_MEMORY_PAGES_2048KB: 16, CUSTOM_PCI_8086_1572: 1 };

function without(...paths: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(files).filter(([path]) => !paths.some((one) => path.startsWith(one))));
}

test("a first look has the values of the files", () => {
  expect(totals(lookAt(files))).toEqual(ALL);
});

test.each([
  ["the memory", lookAt(without("/proc/meminfo", NODE)), "the memory could not be read this time"],
  ["the CPUs", lookAt(without(CPU)), "the online CPUs could not be read"],
  ["the disk", lookAt(files, null), "the size of the disk could not be read"],
  ["all PCI devices", lookAt(without(PCI)), "the PCI devices could not be read"],
  ["what a device is", lookAt(without(`${CARD}/device`)), "the device id of PCI device 0000:3b:00.0 could not be read"],
])("%s that cannot be read any longer keeps the last known value, with a warning", (_, now, warning) => {
  const kept = keepKnown(lookAt(files), now);
  expect(totals(kept)).toEqual(ALL);
  expect(kept.warnings.join("\n")).toContain(warning);
});

test("a card keeps its display heads while the description of its type cannot be read", () => {
  const type = `${CARD}/mdev_supported_types/nvidia-35`;
  const all = { ...files, [`${type}/available_instances`]: "4\n", [`${type}/description`]: "num_heads=2\n" };
  const unread = { ...all, [`${type}/description`]: "" };
  const kept = keepKnown(lookAt(all), lookAt(unread));
  expect(kept.pci?.flatMap(({ mdevTypes }) => mdevTypes.map(({ description }) => description))).toEqual([
    "num_heads=2",
  ]);
  expect(kept.warnings.join("\n")).toContain("the description of type nvidia-35 of PCI device 0000:3b:00.0");
});

test("an interface keeps its speed while its link is down", () => {
  const interfaceDir = `${CARD}/net/ens1f0`;
  const up = { ...files, [`${interfaceDir}/speed`]: "25000\n" };
  const kept = keepKnown(lookAt(up), lookAt({ ...up, [`${interfaceDir}/speed`]: "-1\n" }));
  expect(kept.pci?.flatMap(({ nics }) => nics.map(({ speedMbps }) => speedMbps))).toEqual([25_000]);
  expect(kept.warnings.join("\n")).toContain("the speed of ens1f0 could not be read this time");
});

test("a machine of two NUMA nodes keeps them while their directory cannot be read, and its tree keeps its shape", () => {
  const two = {
    ...files,
    [`${NODE}/node0/cpulist`]: "0-1\n",
    [`${NODE}/node1/meminfo`]: "Node 1 MemTotal: 4194304 kB\n",
    [`${NODE}/node1/cpulist`]: "2-3\n",
    [`${NODE}/node0/hugepages/hugepages-2048kB/nr_hugepages`]: "12\n",
    [`${NODE}/node1/hugepages/hugepages-2048kB/nr_hugepages`]: "4\n",
  };
  const before = lookAt(two);
  const unread = [{ path: NODE, reason: "EIO" }];
  const kept = keepKnown(before, lookAt(without(NODE), undefined, unread));
  const nodes = treeOf(kept, { flat: false }).children?.filter(({ name }) => name.startsWith("numa"));
  expect(nodes).toEqual(treeOf(before, { flat: false }).children?.filter(({ name }) => name.startsWith("numa")));
  expect(nodes?.map(({ name, inventories }) => [name, inventories.CUSTOM_MEMORY_PAGES_2048KB?.total])).toEqual([
    ["numa0", 12],
    ["numa1", 4],
  ]);
  expect(kept.warnings.join("\n")).toContain("the NUMA nodes could not be read this time");
});

test.each([
  ["distance", "the distances of a NUMA node without memory could not be read this time"],
  ["meminfo", "the memory of NUMA node 0 could not be read this time"],
])(
  "CPUs that were given to the nearest memory stay there while the file %s of their node cannot be read",
  (file, why) => {
    const apart = {
      ...files,
      [`${NODE}/node0/meminfo`]: "Node 0 MemTotal: 0 kB\n",
      [`${NODE}/node0/distance`]: "10 20\n",
      [`${NODE}/node1/meminfo`]: "Node 1 MemTotal: 4194304 kB\n",
      [`${NODE}/node1/cpulist`]: "\n",
      [`${NODE}/node1/distance`]: "20 10\n",
    };
    const before = lookAt(apart);
    expect(before.numaNodes).toEqual([
      { id: 1, memoryBytes: 4 * 1024 ** 3, cpus: [0, 1, 2, 3], distances: [10], joinedNodes: [0] },
    ]);
    const unread = Object.fromEntries(Object.entries(apart).filter(([path]) => path !== `${NODE}/node0/${file}`));
    const kept = keepKnown(before, lookAt(unread));
    expect(kept.numaNodes).toEqual(before.numaNodes);
    expect(kept.warnings.join("\n")).toContain(why);
  },
);

test("nodes that name the same CPUs keep their memory while the file of one of them cannot be read", () => {
  const same = {
    ...files,
    [`${NODE}/node0/meminfo`]: "Node 0 MemTotal: 2097152 kB\n",
    [`${NODE}/node0/cpulist`]: "0-3\n",
    [`${NODE}/node1/meminfo`]: "Node 1 MemTotal: 4194304 kB\n",
    [`${NODE}/node1/cpulist`]: "0-3\n",
  };
  const before = lookAt(same);
  expect(before.numaNodes).toMatchObject([{ id: 0, memoryBytes: 2 * 1024 ** 3, joinedMemoryBytes: 4 * 1024 ** 3 }]);
  const kept = keepKnown(before, lookAt({ ...same, [`${NODE}/node1/meminfo`]: "" }));
  expect(kept.numaNodes).toEqual(before.numaNodes);
  expect(kept.warnings.join("\n")).toContain("treated as one with NUMA node 0 could not be read this time");
});

test("takes a value that could be read, whether it has risen or fallen, and forgets a device that was removed", () => {
  const now = lookAt({
    ...without(CARD),
    [`${PCI}/0000:00:1f.0/vendor`]: "0x8086\n",
    [`${CPU}/online`]: "0-1\n",
    "/proc/meminfo": "MemTotal: 8388608 kB\n",
  });
  expect(totals(keepKnown(lookAt(files), now))).toEqual({
    ...{ VCPU: 2, MEMORY_MB: 8192, DISK_GB: 10, CUSTOM_MEMORY_PAGES_2048KB: 16 },
  });
});

test("keeps a value over many looks that cannot read it", () => {
  let host = lookAt(files);
  for (let look = 0; look < 5; look += 1) host = keepKnown(host, lookAt({}, null));
  expect(totals(host)).toEqual(ALL);
});
