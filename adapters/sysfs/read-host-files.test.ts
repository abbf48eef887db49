import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { type InspectedHost, inspectHost } from "../../core/discovery/inspect-host.ts";
import {
  makeSysroot,
  numaNode,
  pciFunction,
  type SysrootPlan,
  sriovCard,
  twoSockets,
} from "../../test/rigs/made-up-sysroot.ts";
import { readHostFiles } from "./read-host-files.ts";
import { Sysroot } from "./sysroot.ts";

const CPU = "/sys/devices/system/cpu";
const GIB_KIB = 1024 ** 2;

function inspect(...plans: readonly SysrootPlan[]): InspectedHost {
  return inspectSysroot(makeSysroot(...plans));
}

function inspectSysroot(sysroot: string): InspectedHost {
  return inspectHost(readHostFiles({ sysroot, instancesPath: "/" }));
}

test("counts sockets, cores and threads, and reads the memory of each NUMA node", () => {
  const host = inspect(twoSockets(), numaNode(0, "0-1,4-5", 8 * GIB_KIB), numaNode(1, "2-3,6-7", 8 * GIB_KIB));
  expect(host).toMatchObject({ packages: 2, cores: 4, threads: 8, memoryBytes: 16 * 1024 ** 3 });
  expect(host.numaNodes).toEqual([
    { id: 0, memoryBytes: 8 * 1024 ** 3, cpus: [0, 1, 4, 5], distances: [10, 21] },
    { id: 1, memoryBytes: 8 * 1024 ** 3, cpus: [2, 3, 6, 7], distances: [10, 21] },
  ]);
  expect(host.cpu).toMatchObject({ vendor: "GenuineIntel", model: "Made-up CPU", flags: ["fpu", "vmx", "avx2"] });
});

test("counts a core once if its second thread is offline, and nothing of a socket that is offline", () => {
  const offline: SysrootPlan = {
    [`${CPU}/online`]: "0-1,4\n",
    ...Object.fromEntries([2, 3, 5, 6, 7].map((cpu) => [`${CPU}/cpu${cpu}/online`, "0\n"])),
  };
  const host = inspect(twoSockets(), offline, numaNode(0, "0-7", GIB_KIB));
  expect(host).toMatchObject({ packages: 1, cores: 2, threads: 3 });
  expect(host.cpu).toMatchObject({ online: [0, 1, 4], offline: [2, 3, 5, 6, 7] });
  expect(host.numaNodes?.[0]?.cpus).toEqual([0, 1, 4]);
});

test("treats a CPU without topology as offline on kernels that have no list of CPUs", () => {
  const { [`${CPU}/online`]: _list, ...files } = twoSockets();
  const host = inspect(files, { [`${CPU}/cpu8`]: {} });
  expect(host).toMatchObject({ packages: 2, cores: 4, threads: 8 });
});

test("tells cores apart by masks and by ids, and two cores of one module by their ids", () => {
  const topology = (cpu: number, siblings: string, core: number): SysrootPlan => ({
    [`${CPU}/cpu${cpu}/topology/thread_siblings`]: siblings,
    [`${CPU}/cpu${cpu}/topology/core_id`]: `${core}`,
    [`${CPU}/cpu${cpu}/topology/physical_package_id`]: "0",
  });
  const modules = inspect(topology(0, "00000000,00000003", 0), topology(1, "00000000,00000003", 1));
  expect(modules).toMatchObject({ packages: 1, cores: 2, threads: 2 });
  const threads = inspect(topology(0, "00000000,00000003", 0), topology(1, "00000000,00000003", 0));
  expect(threads).toMatchObject({ packages: 1, cores: 1, threads: 2 });
});

test("leaves out a package that one of its CPUs contradicts, with a warning, as lstopo does", () => {
  const topology = (cpu: number, siblings: string): SysrootPlan => ({
    [`${CPU}/cpu${cpu}/topology/core_siblings`]: siblings,
    // A list that says otherwise counts only without a mask.
    [`${CPU}/cpu${cpu}/topology/core_siblings_list`]: cpu < 2 ? "0-1" : "2-3",
    [`${CPU}/cpu${cpu}/topology/thread_siblings`]: (1 << cpu).toString(16),
  });
  const host = inspect(topology(0, "3"), topology(1, "3"), topology(2, "e"), topology(3, "c"));
  expect(host).toMatchObject({ packages: 1, cores: 4, threads: 4 });
  expect(host.warnings.join("\n")).toContain(
    "packages of the CPUs 2-3 are left out: the sets that these CPUs name contradict each other",
  );
});

/** CPUs that name these sets of threads as their core, as masks, in one package. */
function threadsOf(sets: readonly string[], coreIds?: readonly number[]): InspectedHost {
  const topologies = sets.map(
    (set, cpu): SysrootPlan => ({
      [`${CPU}/cpu${cpu}/topology/core_siblings`]: ((1 << sets.length) - 1).toString(16),
      [`${CPU}/cpu${cpu}/topology/thread_siblings`]: set,
      ...(coreIds && { [`${CPU}/cpu${cpu}/topology/core_id`]: `${coreIds[cpu]}` }),
    }),
  );
  return inspect(...topologies);
}

test.each([
  ["name sets that contain each other", ["3", "3", "e", "c"], undefined, 1, [[0, 1, 2, 3]]],
  [
    "name one CPU that names itself alone",
    ["3", "3", "c", "8"],
    undefined,
    2,
    [
      [0, 1],
      [2, 3],
    ],
  ],
  [
    "name sets that are cut by the ids of cores",
    ["3", "3", "e", "c"],
    [0, 0, 1, 1],
    1,
    [
      [0, 1],
      [2, 3],
    ],
  ],
  ["contradict each other everywhere", ["3", "6", "c", "9"], undefined, null, [[0, 1, 2, 3]]],
] as const)(
  "CPUs that %s are not counted as cores, and may share one nevertheless",
  (_, sets, ids, cores, siblings) => {
    const host = threadsOf(sets, ids);
    expect(host).toMatchObject({ packages: 1, cores, threads: 4 });
    expect(host.cpu.siblings.toSorted(([a = 0], [b = 0]) => a - b)).toEqual(siblings);
  },
);

test("the number of packages is unknown, and not 0, when all of them contradict each other", () => {
  const topology = (cpu: number, siblings: string): SysrootPlan => ({
    [`${CPU}/cpu${cpu}/topology/core_siblings`]: siblings,
    [`${CPU}/cpu${cpu}/topology/thread_siblings`]: (1 << cpu).toString(16),
  });
  expect(inspect(topology(0, "3"), topology(1, "6"), topology(2, "5"))).toMatchObject({ packages: null, cores: 3 });
});

test("names the kinds of hybrid cores, on Intel by the kernel's lists and on ARM by their capacity", () => {
  const intel = { "/sys/devices/cpu_core/cpus": "0-3\n", "/sys/devices/cpu_atom/cpus": "4-7\n" };
  expect(inspect(twoSockets(), intel).cpu.coreKinds).toEqual([
    { kind: "core", cpus: [0, 1, 2, 3] },
    { kind: "atom", cpus: [4, 5, 6, 7] },
  ]);
  const capacities = Array.from({ length: 8 }, (_, cpu) => [`${CPU}/cpu${cpu}/cpu_capacity`, cpu < 6 ? "446" : "1024"]);
  expect(inspect(twoSockets(), Object.fromEntries(capacities)).cpu.coreKinds).toEqual([
    { kind: "capacity 446", cpus: [0, 1, 2, 3, 4, 5] },
    { kind: "capacity 1024", cpus: [6, 7] },
  ]);
  expect(inspect(twoSockets()).cpu.coreKinds).toEqual([]);
});

test("keeps nodes without memory and nodes without CPUs, and leaves out the memory of a GPU", () => {
  const host = inspect(
    twoSockets(),
    numaNode(0, "0-3", 12 * GIB_KIB),
    numaNode(1, "", 3 * GIB_KIB),
    numaNode(8, "4-7", 0),
    numaNode(255, "", GIB_KIB),
    { "/proc/driver/nvidia/gpus/0004:04:00.0/numa_status": "Node:      255\nStatus:    online\n" },
  );
  expect(host.numaNodes?.map(({ id, memoryBytes }) => [id, memoryBytes])).toEqual([
    [0, 12 * 1024 ** 3],
    [1, 3 * 1024 ** 3],
    [8, 0],
  ]);
  expect(host.memoryBytes).toBe(15 * 1024 ** 3);
});

test("treats nodes that name the same CPUs as one, and a host without nodes, too", () => {
  const same = inspect(twoSockets(), numaNode(0, "0-7", 8 * GIB_KIB), numaNode(1, "0-7", 8 * GIB_KIB));
  expect(same.numaNodes).toHaveLength(1);
  expect(same.numaNodes?.[0]).toMatchObject({
    ...{ id: 0, memoryBytes: 8 * 1024 ** 3 },
    ...{ joinedNodes: [1], joinedMemoryBytes: 8 * 1024 ** 3 },
  });
  expect(same.memoryBytes).toBe(16 * 1024 ** 3);
  expect(same.warnings.join("\n")).toContain("the NUMA nodes 0-1 are treated as one: they name the same CPUs");
  const some = inspect(
    ...[twoSockets(), numaNode(0, "0-3", GIB_KIB), numaNode(1, "4-5", GIB_KIB), numaNode(2, "5-7", 2 * GIB_KIB)],
  );
  expect(some.numaNodes).toMatchObject([
    { id: 0, cpus: [0, 1, 2, 3] },
    { id: 1, cpus: [4, 5, 6, 7], memoryBytes: 1024 ** 3, joinedNodes: [2], joinedMemoryBytes: 2 * 1024 ** 3 },
  ]);
  const none = inspect(twoSockets());
  expect(none.numaNodes).toEqual([
    { id: 0, memoryBytes: 16 * 1024 ** 3, cpus: [0, 1, 2, 3, 4, 5, 6, 7], distances: null },
  ]);
});

test("reads the huge pages of each size, by node", () => {
  const host = inspect(
    twoSockets(),
    numaNode(0, "0-3", 8 * GIB_KIB, { 2048: 512, 1048576: 2 }),
    numaNode(1, "4-7", 8 * GIB_KIB, { 2048: 0, 1048576: 1 }),
  );
  expect(host.hugepages?.map(({ sizeKib, total, nodes }) => [sizeKib, total, nodes.map((node) => node.total)])).toEqual(
    [
      [2048, 512, [512, 0]],
      [1048576, 3, [2, 1]],
    ],
  );
});

test("finds the virtual functions of an SR-IOV card, behind the kernel's links", () => {
  const host = inspect(twoSockets(), sriovCard());
  const [card, ...functions] = host.pci ?? [];
  expect(card).toMatchObject({
    ...{ address: "0000:3b:00.0", vendor: "8086", device: "1572", class: "020000", numaNode: 1, driver: "i40e" },
    sriov: { totalVfs: 4, numVfs: 2, vfs: ["0000:3b:02.0", "0000:3b:02.1"] },
    nics: [{ name: "ens1f0", macAddress: "3c:fd:fe:00:00:01", speedMbps: 10_000, master: "br-physnet1" }],
  });
  expect(functions.map(({ physicalFunction, iommuGroup, sriov }) => [physicalFunction, iommuGroup, sriov])).toEqual([
    ["0000:3b:00.0", "70", null],
    ["0000:3b:00.0", "71", null],
  ]);
});

test("reads mediated devices, memory encryption, firmware and a TPM", () => {
  const type = "/sys/bus/pci/devices/0000:84:00.0/mdev_supported_types/nvidia-35";
  const host = inspect(twoSockets(), pciFunction("/sys/bus/pci/devices/0000:84:00.0", "0x13bb", "0x030200"), {
    [`${type}/name`]: "GRID M60-0B\n",
    [`${type}/description`]:
      "num_heads=2, frl_config=45, framebuffer=512M, max_resolution=2560x1600, max_instance=16\n",
    [`${type}/available_instances`]: "14\n",
    [`${type}/devices/4b20d080-1b54-4048-85b3-a6a62d165c01`]: {},
    "/sys/module/kvm_amd/parameters/sev": "Y\n",
    "/sys/module/kvm_amd/parameters/sev_es": "0\n",
    "/sys/fs/cgroup/misc.capacity": "sev 410\nsev_es 99\n",
    "/sys/firmware/efi": {},
    "/sys/class/tpm/tpm0/tpm_version_major": "2\n",
  });
  expect(host.pci?.[0]?.mdevTypes).toMatchObject([
    {
      ...{ type: "nvidia-35", name: "GRID M60-0B", available: 14, existing: 1 },
      description: "num_heads=2, frl_config=45, framebuffer=512M, max_resolution=2560x1600, max_instance=16",
    },
  ]);
  expect(host.sev).toEqual({ sev: true, sevEs: false, sevSnp: false, sevGuestsMax: 410, sevEsGuestsMax: 99 });
  expect(host.firmware.kind).toBe("uefi");
  expect(host.tpms).toEqual([{ name: "tpm0", version: "2" }]);
});

test("reports missing values as unknown, each with a warning, and never as zero", () => {
  const host = inspect({ "/proc": {}, "/sys": {} });
  expect(host).toMatchObject({ packages: null, cores: null, threads: null, numaNodes: null, memoryBytes: null });
  expect(host).toMatchObject({ hugepages: null, pci: null, tpms: null, diskBytes: null, firmware: { kind: null } });
  expect(host.cpu).toMatchObject({ model: null, flags: null, online: null, offline: null, isolated: null });
  expect(host.sev).toMatchObject({ sev: null, sevEs: null });
  for (const about of ["CPUs", "NUMA nodes", "memory", "huge pages", "PCI devices", "TPMs", "SEV", "firmware", "disk"])
    expect(host.warnings.filter((warning) => warning.includes(`${about} `) && warning.includes("unknown"))).not.toEqual(
      [],
    );
});

test("rejects values that cannot be true", () => {
  const garbage = "\u0000\u00ff 9999999999-1,,x\n";
  const files = Object.fromEntries(Object.keys(twoSockets()).map((path) => [path, garbage]));
  const card = Object.fromEntries(
    Object.entries(sriovCard()).map(([path, content]) => [path, typeof content === "string" ? garbage : content]),
  );
  const node = Object.fromEntries(Object.keys(numaNode(0, "0", 1, { 2048: 1 })).map((path) => [path, garbage]));
  const host = inspect(files, card, node);
  expect(host).toMatchObject({ packages: null, cores: null, memoryBytes: null, cpu: { model: null, flags: null } });
  expect(host.numaNodes).toEqual([{ id: 0, memoryBytes: null, cpus: null, distances: null }]);
  expect(host.hugepages).toMatchObject([{ sizeKib: 2048, total: null }]);
  expect(host.pci?.[0]).toMatchObject({
    vendor: null,
    device: null,
    class: null,
    sriov: { totalVfs: null, numVfs: null },
  });
  expect(host.warnings.some((warning) => warning.startsWith(`${CPU}/online is not a list`))).toBe(true);
});

test("does not follow links that lead out of the sysroot", () => {
  const outside = makeSysroot(twoSockets(), numaNode(0, "0-7", GIB_KIB));
  const host = inspect({
    "/proc/meminfo": { link: `${outside}/proc/meminfo` },
    "/proc/cpuinfo": { link: "../../../../../../../../../../proc/cpuinfo" },
    "/sys/devices/system/cpu": { link: `${outside}/sys/devices/system/cpu` },
    "/sys/devices/system/node/node0": { link: `${outside}/sys/devices/system/node/node0` },
  });
  expect(host).toMatchObject({ packages: null, threads: null, memoryBytes: null, cpu: { model: null } });
  expect(host.numaNodes).toEqual([{ id: 0, memoryBytes: null, cpus: null, distances: null }]);
  for (const path of ["/proc/meminfo", "/proc/cpuinfo", CPU])
    expect(host.warnings).toContain(`${path} was not read: a link leads out of the sysroot`);
});

test("follows links inside the sysroot, and a sysroot that is a link itself", () => {
  const root = makeSysroot(
    { ...twoSockets(), "/sys/devices/system/node": { link: "../../elsewhere" } },
    {
      "/sys/elsewhere/node0/cpulist": "0-7\n",
      "/sys/elsewhere/node0/meminfo": "Node 0 MemTotal: 2048 kB\n",
    },
  );
  const link = makeSysroot({ "/link": { link: root } });
  expect(inspectSysroot(`${link}/link`)).toMatchObject({
    packages: 2,
    numaNodes: [{ id: 0, memoryBytes: 2048 * 1024, cpus: [0, 1, 2, 3, 4, 5, 6, 7] }],
  });
});

test("does not wait for a pipe, does not read a directory as a file, and refuses a file that is too long", () => {
  const root = makeSysroot(twoSockets(), { "/sys/devices/system/node/online": "0".repeat(100_000) });
  mkdirSync(`${root}/sys/devices/system/cpu/cpu0/online`);
  execFileSync("mkfifo", [`${root}/sys/devices/system/cpu/cpu1/online`]);
  const host = inspectSysroot(root);
  expect(host).toMatchObject({ packages: 2, cores: 4, threads: 8 });
  expect(host.warnings).toContain(`${CPU}/cpu0/online was not read: it is not a regular file`);
  expect(host.warnings).toContain(`${CPU}/cpu1/online was not read: it is not a regular file`);
  expect(host.warnings).toContain("/sys/devices/system/node/online was not read: it is longer than 65536 bytes");
});

test("stops at its bounds, and says so", () => {
  const root = makeSysroot({ "/a/1": "1", "/a/2": "2", "/a/3": "3" });
  const narrow = new Sysroot(root, { entriesPerDirectory: 2, reads: 10 });
  expect(narrow.entries("/a")).toBeUndefined();
  expect(narrow.unread).toEqual([{ path: "/a", reason: "it has more than 2 entries" }]);
  const short = new Sysroot(root, { entriesPerDirectory: 10, reads: 2 });
  expect(["/a/1", "/a/2", "/a/3", "/a/1"].map((path) => short.text(path, 10))).toEqual([
    "1",
    "2",
    undefined,
    undefined,
  ]);
  expect(short.unread).toEqual([
    { path: "/a/3", reason: "and nothing after it: the limit of the amount to read is reached" },
  ]);
});
