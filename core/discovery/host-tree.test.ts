import { describe, expect, test } from "vitest";
import fc from "../../test/rigs/property.ts";
import { resourceClass } from "../ledger/ids.ts";
import { asked, hostRequestOf } from "../scheduling/request/some-request.ts";
import { formatNumberList } from "./format-number-list.ts";
import { inspectHost } from "./inspect-host.ts";
import { parseCpuSet } from "./parse-cpu-set.ts";
import { parseMemoryLine, parseNumberList, parseNumberMask, parsePciId } from "./parse-values.ts";
import { below, build, GIB, NO_FILES, rootOf, twoNodes } from "./some-host.ts";
import { spread } from "./spread.ts";
import type { TreeProvider } from "./tree-provider.ts";

describe("the tree of a host", () => {
  test("has CPU and memory in NUMA nodes, and counts huge pages as part of the memory", () => {
    const root = rootOf(twoNodes());
    expect(root.inventories).toEqual({ DISK_GB: { total: 100 } });
    expect(root.children).toEqual([
      {
        name: "numa0",
        inventories: {
          VCPU: { total: 4 },
          MEMORY_MB: { total: 8 * 1024 },
          CUSTOM_MEMORY_PAGES_1048576KB: { total: 3 },
        },
        traits: ["HW_NUMA_ROOT", "CUSTOM_MEMORY_PAGES_LARGE"],
      },
      { name: "numa1", inventories: { VCPU: { total: 4 }, MEMORY_MB: { total: 8 * 1024 } }, traits: ["HW_NUMA_ROOT"] },
    ]);
  });

  test("counts the memory of nodes that are treated as one in their common provider", () => {
    const { numaNodes } = twoNodes();
    const [first, second] = numaNodes!;
    const joined = { ...first!, memoryBytes: 4 * GIB, joinedNodes: [4, 5], joinedMemoryBytes: 8 * GIB };
    const root = rootOf(twoNodes({ numaNodes: [joined, { ...second!, memoryBytes: 4 * GIB }] }));
    expect(root.children?.map(({ inventories }) => inventories.MEMORY_MB)).toEqual([
      { total: 12 * 1024 },
      { total: 4 * 1024 },
    ]);
  });

  test("has room for as many guests with huge pages as it has pages, even when nearly all memory is in pages", () => {
    const pool = { sizeKib: 1048576, total: 14, free: 14, nodes: [0, 1].map((id) => ({ id, total: 7, free: 7 })) };
    const { inventories } = rootOf(twoNodes({ hugepages: [pool] }), { flat: true });
    const query = hostRequestOf(asked({ "hw:mem_page_size": "1GB" }));
    const [wanted] = query.groups.map(({ resources }) => resources);
    const guests = (name: string) =>
      Math.floor((inventories[name]?.total ?? 0) / (wanted?.get(resourceClass(name)) ?? 1));
    expect([guests("CUSTOM_MEMORY_PAGES_1048576KB"), guests("MEMORY_MB")]).toEqual([3, 4]);
  });

  test("has CPU and memory in the root when it is flat", () => {
    const root = rootOf(twoNodes(), { flat: true, cpuSharedSet: [0, 1], cpuDedicatedSet: [4, 5, 6] });
    expect(root).toEqual({
      name: "h1",
      inventories: {
        DISK_GB: { total: 100 },
        VCPU: { total: 2 },
        PCPU: { total: 3 },
        MEMORY_MB: { total: 16 * 1024 },
        CUSTOM_MEMORY_PAGES_1048576KB: { total: 3 },
      },
      traits: ["CUSTOM_MEMORY_PAGES_LARGE"],
    });
  });

  test("has the trait of CPU threads at its root and at the nodes whose cores have several", () => {
    const { cpu } = twoNodes();
    const host = twoNodes({ cpu: { ...cpu, siblings: [[4, 5]] } });
    const root = rootOf(host);
    const has = ({ traits }: TreeProvider) => traits.includes("HW_CPU_HYPERTHREADING");
    expect([has(root), ...(root.children ?? []).map(has)]).toEqual([true, false, true]);
    expect(rootOf(host, { flat: true }).traits.filter((one) => one === "HW_CPU_HYPERTHREADING")).toHaveLength(1);
    expect(has(rootOf(twoNodes()))).toBe(false);
  });

  test("offers VCPU of the shared set and PCPU of the dedicated one, and leaves out a class whose set is not given", () => {
    const both = below(rootOf(twoNodes(), { cpuSharedSet: [0, 1, 4], cpuDedicatedSet: [2, 5, 6] }));
    expect(both.numa0).toMatchObject({ VCPU: { total: 2 }, PCPU: { total: 1 } });
    expect(both.numa1).toMatchObject({ VCPU: { total: 1 }, PCPU: { total: 2 } });
    const dedicated = below(rootOf(twoNodes(), { cpuDedicatedSet: [2] }));
    expect(dedicated.numa0).toMatchObject({ PCPU: { total: 1 } });
    expect(Object.values(dedicated).some((inventories) => "VCPU" in inventories)).toBe(false);
  });

  test("refuses sets that name a CPU which is not online, or that name the same CPU", () => {
    const offline = build(twoNodes(), { cpuDedicatedSet: [7, 8] }).tree;
    expect(offline).toEqual({
      kind: "refused",
      reason: "cpu-dedicated-set names CPUs that are not online: 8; online are 0-7",
    });
    expect(build(twoNodes(), { cpuSharedSet: [1, 2], cpuDedicatedSet: [2, 3] }).tree.kind).toBe("refused");
  });

  test("distributes the reserved amounts of the host over the nodes", () => {
    const root = rootOf(twoNodes({ hugepages: [] }), {
      ...{ reservedHostMemoryMb: 512, reservedHostCpus: 3, reservedHostDiskMb: 1025 },
    });
    expect(root.inventories).toEqual({ DISK_GB: { total: 100, reserved: 2 } });
    expect(below(root)).toEqual({
      numa0: { VCPU: { total: 4, reserved: 1 }, MEMORY_MB: { total: 8192, reserved: 256 } },
      numa1: { VCPU: { total: 4, reserved: 2 }, MEMORY_MB: { total: 8192, reserved: 256 } },
    });
  });

  test("has the initial ratios at VCPU, MEMORY_MB and DISK_GB, and at no other class", () => {
    const root = rootOf(twoNodes(), {
      ...{ cpuSharedSet: [0, 4], cpuDedicatedSet: [1], reservedHostCpus: 1 },
      ...{ initialCpuAllocationRatio: 4, initialRamAllocationRatio: 1.5, initialDiskAllocationRatio: 0.9 },
    });
    expect(root.inventories).toEqual({ DISK_GB: { total: 100, initial_allocation_ratio: 0.9 } });
    expect(below(root).numa0).toEqual({
      VCPU: { total: 1, initial_allocation_ratio: 4 },
      PCPU: { total: 1 },
      MEMORY_MB: { total: 8192, initial_allocation_ratio: 1.5 },
      CUSTOM_MEMORY_PAGES_1048576KB: { total: 3 },
    });
    expect(below(root).numa1?.VCPU).toEqual({ total: 1, reserved: 1, initial_allocation_ratio: 4 });
  });

  test("warns when more is reserved than the host has", () => {
    const { tree, warnings } = build(twoNodes(), { reservedHostCpus: 9, reservedHostMemoryMb: 20_000 });
    expect(tree.kind).toBe("tree");
    expect(warnings).toEqual([
      "reserved-host-cpus is 9, but the host has only 8 VCPU: all of them are reserved",
      "reserved-host-memory-mb is 20000, but the host has only 16384: all of it is reserved",
    ]);
  });

  test("divides the memory of the host in proportion to the nodes' own numbers", () => {
    const host = twoNodes({ memoryBytes: 24 * GIB, hugepages: [] });
    expect(below(rootOf(host))).toMatchObject({
      numa0: { MEMORY_MB: { total: 12_288 } },
      numa1: { MEMORY_MB: { total: 12_288 } },
    });
  });

  test("makes no inventory of an unknown value, nor of a total of 0", () => {
    expect(rootOf(inspectHost(NO_FILES))).toEqual({ name: "h1", inventories: {}, traits: [] });
    const [first, second] = twoNodes().numaNodes ?? [];
    const host = twoNodes({ memoryBytes: 8 * GIB, numaNodes: [{ ...first!, memoryBytes: 0 }, second!], hugepages: [] });
    expect(below(rootOf(host)).numa0).toEqual({ VCPU: { total: 4 } });
    const empty = twoNodes({
      memoryBytes: 8 * GIB,
      numaNodes: [{ ...first!, cpus: [], memoryBytes: 0 }, second!],
      hugepages: [],
    });
    expect(Object.keys(below(rootOf(empty)))).toEqual(["numa1"]);
  });

  test("gives the CPUs that belong to no node to the root, without the pages and the memory", () => {
    const [first] = twoNodes().numaNodes ?? [];
    const two = [first!, { id: 1, cpus: [4, 5], memoryBytes: 8 * GIB, distances: null }];
    expect(rootOf(twoNodes({ numaNodes: two })).inventories).toEqual({ DISK_GB: { total: 100 }, VCPU: { total: 2 } });
  });

  test("warns of isolated CPUs that guests would share", () => {
    const host = twoNodes();
    const isolated = { ...host, cpu: { ...host.cpu, isolated: [6, 7] } };
    expect(build(isolated).warnings).toHaveLength(1);
    expect(build(isolated, { cpuSharedSet: [0, 6] }).warnings).toHaveLength(1);
    expect(build(isolated, { cpuSharedSet: [0], cpuDedicatedSet: [6, 7] }).warnings).toEqual([]);
  });

  test("has a provider for guests with encrypted memory", () => {
    const sev = { sev: true, sevEs: false, sevSnp: false, sevGuestsMax: 15, sevEsGuestsMax: null };
    expect(below(rootOf(twoNodes({ sev }))).amd_sev).toEqual({ MEM_ENCRYPTION_CONTEXT: { total: 15, max_unit: 1 } });
    const { warnings } = build(twoNodes({ sev: { ...sev, sevGuestsMax: null } }));
    expect(warnings.join()).toContain("SEV is not reported");
  });
});

describe("values of files", () => {
  test("lists in the kernel's format are read", () => {
    const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 65_535 }), { maxLength: 50 });
    fc.assert(
      fc.property(numbers, (some) => {
        const sorted = [...some].sort((a, b) => a - b);
        expect(parseNumberList(`${formatNumberList(sorted)}\n`)).toEqual(sorted);
      }),
    );
  });

  test("any content of a file is either read or unknown", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const parse of [parseNumberList, parseNumberMask, parseCpuSet]) {
          const read = parse(text);
          expect(read === null || read.every((one) => Number.isInteger(one) && one >= 0)).toBe(true);
        }
      }),
    );
  });

  test.each([
    ["3-1", null],
    ["0-99999999", null],
    ["1,,2", null],
    ["\n", []],
    ["0-2,5\n", [0, 1, 2, 5]],
  ])("the list %j", (text, expected) => {
    expect(parseNumberList(text)).toEqual(expected);
  });

  test("masks are groups of 32 bits, the last one first", () => {
    expect(parseNumberMask("00000001,80000001\n")).toEqual([0, 31, 32]);
    expect(parseNumberMask("0,xyz")).toBeNull();
    expect(parseNumberMask(undefined)).toBeNull();
  });

  test("sets of CPUs leave out the CPUs that follow ^", () => {
    expect(parseCpuSet("0-7, ^3,^5-6")).toEqual([0, 1, 2, 4, 7]);
    for (const text of ["", "^1", "1,^1", "a", "1-"]) expect(parseCpuSet(text)).toBeNull();
  });

  test("memory and PCI ids", () => {
    expect(parseMemoryLine("Node 12 MemTotal:   2048 kB\n", "MemTotal")).toBe(2048 * 1024);
    expect(parseMemoryLine("MemTotal: 12 pages\n", "MemTotal")).toBeNull();
    expect(parsePciId("0x8086\n", 4)).toBe("8086");
    expect(parsePciId("0x12345", 4)).toBeNull();
  });

  test("a share never exceeds the size of its place, and no unit is lost", () => {
    fc.assert(
      fc.property(fc.nat(10_000), fc.array(fc.nat(1_000), { maxLength: 20 }), (amount, sizes) => {
        const shares = spread(amount, sizes);
        const all = sizes.reduce((sum, size) => sum + size, 0);
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(Math.min(amount, all));
        expect(shares.every((share, index) => share >= 0 && share <= (sizes[index] ?? 0))).toBe(true);
      }),
    );
  });
});
