import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** A sysroot by its paths. A text is a file, `{ link }` is a symbolic link with that target, and `{}` is an empty directory. */
export type SysrootPlan = Readonly<Record<string, string | { readonly link?: string }>>;

/** Writes the sysroot into a temporary directory, which is removed after the test. */
export function makeSysroot(...plans: readonly SysrootPlan[]): string {
  const root = mkdtempSync(join(tmpdir(), "berth-sysroot-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  writeSysroot(root, ...plans);
  return root;
}

/** Writes the sysroot into a directory of the caller's. */
export function writeSysroot(root: string, ...plans: readonly SysrootPlan[]): void {
  for (const [path, content] of Object.entries(Object.assign({}, ...plans) as SysrootPlan)) {
    const whole = join(root, path);
    mkdirSync(dirname(whole), { recursive: true });
    if (typeof content === "string") writeFileSync(whole, content);
    else if (content.link === undefined) mkdirSync(whole, { recursive: true });
    else symlinkSync(content.link, whole);
  }
}

/** A machine whose CPU n is the only CPU of NUMA node `nodes[n]`, each with 4 GiB. */
export function cpuPerNode(nodes: readonly number[]): SysrootPlan {
  const all = `0-${nodes.length - 1}\n`;
  const files: Record<string, SysrootPlan[string]> = {
    ...{ [`${CPU}/online`]: all, [`${CPU}/present`]: all, [`${CPU}/isolated`]: "\n" },
    "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Made-up CPU\nflags\t\t: fpu\n",
    "/proc/meminfo": `MemTotal:       ${nodes.length * NODE_KIB} kB\n`,
  };
  for (const [cpu, node] of nodes.entries()) {
    const topology = `${CPU}/cpu${cpu}/topology`;
    Object.assign(files, numaNode(node, String(cpu), NODE_KIB), {
      ...{ [`${topology}/core_cpus_list`]: `${cpu}\n`, [`${topology}/package_cpus_list`]: all },
      ...{ [`${topology}/core_id`]: `${cpu}\n`, [`${topology}/physical_package_id`]: "0\n" },
    });
  }
  return files;
}

const NODE_KIB = 4 * 1024 ** 2;
const CPU = "/sys/devices/system/cpu";
const NODE = "/sys/devices/system/node";

/** Two sockets of two cores with two threads each. Threads of a core are CPUs n and n + 4; CPUs 0, 1, 4, 5 are socket 0. */
export function twoSockets(): SysrootPlan {
  const files: Record<string, string> = {
    [`${CPU}/online`]: "0-7\n",
    [`${CPU}/present`]: "0-7\n",
    [`${CPU}/isolated`]: "\n",
    "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Made-up CPU\nflags\t\t: fpu vmx avx2\n",
    "/proc/meminfo": "MemTotal:       16777216 kB\nMemFree:         1000000 kB\n",
  };
  for (let cpu = 0; cpu < 8; cpu++) {
    const [core, socket] = [cpu % 4, Math.floor((cpu % 4) / 2)];
    const topology = `${CPU}/cpu${cpu}/topology`;
    files[`${topology}/core_cpus_list`] = `${core},${core + 4}\n`;
    files[`${topology}/package_cpus_list`] = socket === 0 ? "0-1,4-5\n" : "2-3,6-7\n";
    files[`${topology}/core_id`] = `${core % 2}\n`;
    files[`${topology}/physical_package_id`] = `${socket}\n`;
  }
  return files;
}

/** A NUMA node with this much memory, and with `pages` (by their size in KiB). */
export function numaNode(
  id: number,
  cpus: string,
  memoryKib: number,
  pages: Readonly<Record<number, number>> = {},
): SysrootPlan {
  const directory = `${NODE}/node${id}`;
  const files: Record<string, string> = {
    [`${directory}/cpulist`]: `${cpus}\n`,
    [`${directory}/meminfo`]: `Node ${id} MemTotal:       ${memoryKib} kB\nNode ${id} MemFree:  1000 kB\n`,
    [`${directory}/distance`]: "10 21\n",
  };
  for (const [size, count] of Object.entries(pages)) {
    files[`${directory}/hugepages/hugepages-${size}kB/nr_hugepages`] = `${count}\n`;
    files[`${directory}/hugepages/hugepages-${size}kB/free_hugepages`] = `${count}\n`;
  }
  return files;
}

/** The files of a machine with control groups of version 2 whose process is in the group. The sets are those of groups, by their paths. */
export function controlGroup(
  group: string,
  sets: Readonly<Record<string, { readonly cpus: string; readonly mems: string }>>,
): SysrootPlan {
  const files = Object.entries(sets).flatMap(([path, { cpus, mems }]) => [
    [`/sys/fs/cgroup${path}/cpuset.cpus.effective`, `${cpus}\n`],
    [`/sys/fs/cgroup${path}/cpuset.mems.effective`, `${mems}\n`],
  ]);
  return {
    "/proc/self/cgroup": `0::${group}\n`,
    "/proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
    ...Object.fromEntries(files),
  };
}

/** A network card on node 1 with SR-IOV, which supports four virtual functions and has two now, below links as the kernel makes them. */
export function sriovCard(bus = "3b"): SysrootPlan {
  const parent = `/sys/devices/pci0000:3a/0000:${bus}:00.0`;
  const plan: Record<string, SysrootPlan[string]> = {
    [`/sys/bus/pci/devices/0000:${bus}:00.0`]: { link: `../../../devices/pci0000:3a/0000:${bus}:00.0` },
    ...pciFunction(parent, "0x1572"),
    [`${parent}/sriov_totalvfs`]: "4\n",
    [`${parent}/sriov_numvfs`]: "2\n",
    [`${parent}/driver`]: { link: "../../../bus/pci/drivers/i40e" },
    [`${parent}/net/ens1f0/address`]: "3c:fd:fe:00:00:01\n",
    [`${parent}/net/ens1f0/speed`]: "10000\n",
    [`${parent}/net/ens1f0/master`]: { link: "../../../../../virtual/net/br-physnet1" },
  };
  for (const [index, address] of [`0000:${bus}:02.0`, `0000:${bus}:02.1`].entries()) {
    const directory = `/sys/devices/pci0000:3a/${address}`;
    Object.assign(plan, pciFunction(directory, "0x154c"), {
      [`/sys/bus/pci/devices/${address}`]: { link: `../../../devices/pci0000:3a/${address}` },
      [`${directory}/physfn`]: { link: `../0000:${bus}:00.0` },
      [`${directory}/iommu_group`]: { link: `../../../kernel/iommu_groups/${70 + index}` },
      [`${parent}/virtfn${index}`]: { link: `../${address}` },
    });
  }
  return plan;
}

/** A PCI function by Intel on node 1, by default of the class of network cards. */
export function pciFunction(directory: string, device: string, pciClass = "0x020000"): SysrootPlan {
  return {
    [`${directory}/vendor`]: "0x8086\n",
    [`${directory}/device`]: `${device}\n`,
    [`${directory}/class`]: `${pciClass}\n`,
    [`${directory}/numa_node`]: "1\n",
  };
}
