import { describe, expect, test } from "vitest";
import { type InspectedHost, type InspectOptions, inspectHost } from "../../core/discovery/inspect-host.ts";
import { controlGroup, makeSysroot, numaNode, type SysrootPlan, twoSockets } from "../../test/rigs/made-up-sysroot.ts";
import { readHostFiles } from "./read-host-files.ts";

const GIB = 1024 ** 3;
const GIB_KIB = 1024 ** 2;
/** Two nodes of 8 GiB with a socket each, whose cores are CPUs n and n + 4. */
const machine = Object.assign(
  {},
  twoSockets(),
  numaNode(0, "0-1,4-5", 8 * GIB_KIB, { 2048: 10 }),
  numaNode(1, "2-3,6-7", 8 * GIB_KIB, { 2048: 30 }),
  { "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "40\n" },
) as SysrootPlan;
const NODE_0 = { cpus: "0-1,4", mems: "0" };
const ALL = { cpus: "0-7", mems: "0-1" };

const inspect = (plan: SysrootPlan, options?: InspectOptions): InspectedHost =>
  inspectHost(readHostFiles({ sysroot: makeSysroot(machine, plan), instancesPath: "/" }), options);

describe("a host whose guests are in a control group", () => {
  test("has only the CPUs and the memory that the group allows, and says so", () => {
    const host = inspect(controlGroup("/berth.service", { "/berth.service": NODE_0 }));
    expect(host).toMatchObject({ packages: 1, cores: 2, threads: 3, memoryBytes: 8 * GIB });
    expect(host.controlGroup).toEqual({ path: "/berth.service", cpus: [0, 1, 4], memoryNodes: [0] });
    expect(host.cpu).toMatchObject({ usable: [0, 1, 4], siblings: [[0, 4]], online: [0, 1, 2, 3, 4, 5, 6, 7] });
    expect(host.numaNodes).toEqual([
      { id: 0, memoryBytes: 8 * GIB, cpus: [0, 1, 4], distances: [10], joinedNodes: [1] },
    ]);
    expect(host.hugepages).toMatchObject([{ sizeKib: 2048, total: 10 }]);
    expect(host.warnings).toEqual(
      expect.arrayContaining([
        "the control group /berth.service allows only the CPUs 0-1,4 of those that are online, 0-7: the others are left out, since guests are started in this group",
        "the control group /berth.service does not allow the memory of the NUMA nodes 1: it is left out, since guests are started in this group",
      ]),
    );
  });

  test("gives allowed CPUs whose memory is forbidden to the nearest node, and keeps a node with memory alone", () => {
    const host = inspect(controlGroup("/g", { "/g": { cpus: "0-1", mems: "1" } }));
    expect(host.numaNodes).toEqual([{ id: 1, memoryBytes: 8 * GIB, cpus: [0, 1], distances: [21], joinedNodes: [0] }]);
    // As lstopo counts them: one package has the CPUs, and the other one the memory.
    expect(host).toMatchObject({ packages: 2, cores: 2, threads: 2 });
  });

  test("leaves such CPUs without a node when the distances are unknown", () => {
    const { "/sys/devices/system/node/node1/distance": _, ...unknown } = {
      ...machine,
      ...controlGroup("/g", { "/g": { cpus: "2-3,5", mems: "0" } }),
    };
    const host = inspectHost(readHostFiles({ sysroot: makeSysroot(unknown), instancesPath: "/" }));
    expect(host.numaNodes?.map(({ id, cpus }) => [id, cpus])).toEqual([[0, [5]]]);
    expect(host.warnings.join("\n")).toContain("the CPUs of NUMA node 1 belong to no node");
  });

  test("has an unknown amount of memory while that of a forbidden node cannot be read, and not that of both nodes", () => {
    const group = controlGroup("/g", { "/g": NODE_0 });
    const host = inspect({ ...group, "/sys/devices/system/node/node1/meminfo": "" });
    expect(host.memoryBytes).toBeNull();
    expect(host.warnings.join("\n")).toContain("the memory of NUMA node 1 is unknown");
  });

  test("keeps the allowed one of two nodes that name the same CPUs", () => {
    const group = controlGroup("/g", { "/g": { cpus: "0-7", mems: "1" } });
    const same = Object.assign({}, numaNode(0, "0-7", 8 * GIB_KIB), numaNode(1, "0-7", 8 * GIB_KIB)) as SysrootPlan;
    const host = inspect({ ...same, ...group });
    expect(host.numaNodes).toMatchObject([{ id: 1, memoryBytes: 8 * GIB, cpus: [0, 1, 2, 3, 4, 5, 6, 7] }]);
    expect(host.memoryBytes).toBe(8 * GIB);
  });

  test("has the limits of the nearest group above for which the controller is enabled", () => {
    const above = controlGroup("/berth.slice/berth.service/agent", { "/berth.slice": NODE_0, "": ALL });
    expect(inspect(above).cpu.usable).toEqual([0, 1, 4]);
    expect(inspect(controlGroup("/user.slice", { "": ALL })).cpu.usable).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test.each([
    ["version 1", "cgroup rw,cpuset", "cpuset.cpus", "cpuset.mems"],
    ["version 1 without the prefix", "cgroup rw,relatime,cpuset,noprefix", "cpus", "mems"],
    [
      "version 1 that behaves as 2",
      "cgroup rw,cpuset,cpuset_v2_mode",
      "cpuset.effective_cpus",
      "cpuset.effective_mems",
    ],
    ["a cpuset file system", "cpuset rw", "cpus", "mems"],
  ])("is read from a hierarchy of %s, of which only the old files of the kernel tell", (_, mount, cpus, mems) => {
    const host = inspect({
      "/proc/self/cpuset": "/jobs/7\n",
      "/proc/mounts": `cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\nnone /dev/cpu\\040set ${mount} 0 0\n`,
      [`/dev/cpu set/jobs/7/${cpus}`]: "0-1,4\n",
      [`/dev/cpu set/jobs/7/${mems}`]: "0\n",
      "/dev/cpu set/cpus": "0-7\n",
    });
    expect(host.controlGroup).toEqual({ path: "/jobs/7", cpus: [0, 1, 4], memoryNodes: [0] });
  });

  test("is found in a container, which sees its own group as the whole hierarchy", () => {
    const mounted = (root: string) => ({
      "/proc/self/cgroup": "5:cpuset:/docker/c1\n0::/\n",
      "/proc/self/mountinfo": `41 30 0:31 ${root} /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n`,
      "/sys/fs/cgroup/cpuset/cpuset.cpus": "0-1,4\n",
      "/sys/fs/cgroup/cpuset/cpuset.mems": "0\n",
    });
    expect(inspect(mounted("/docker/c1")).cpu.usable).toEqual([0, 1, 4]);
    // The mount shows another container's groups.
    expect(inspect(mounted("/docker/c2")).controlGroup).toMatchObject({ cpus: null, memoryNodes: null });
  });
});

describe("a control group that cannot be read", () => {
  const isWhole = (host: InspectedHost) =>
    expect(host).toMatchObject({ packages: 2, cores: 4, threads: 8, memoryBytes: 16 * GIB });

  test("forbids nothing, with a warning", () => {
    const host = inspect({});
    isWhole(host);
    expect(host.controlGroup).toEqual({ path: null, cpus: null, memoryNodes: null });
    expect(host.warnings).toEqual(
      expect.arrayContaining([
        "the CPUs that the control group of the process allows are unknown, since its files cannot be read: all count as allowed",
      ]),
    );
  });

  test("is not taken for the one above it, and keeps the limits that were known", () => {
    const sets = { "/g": NODE_0, "": ALL };
    const { "/sys/fs/cgroup/g/cpuset.cpus.effective": _, ...others } = controlGroup("/g", sets);
    const unreadable = { ...others, "/sys/fs/cgroup/g/cpuset.cpus.effective/x": "" };
    const host = inspect(unreadable);
    expect(host.controlGroup).toEqual({ path: "/g", cpus: null, memoryNodes: [0] });
    const { controlGroup: before } = inspect(controlGroup("/g", sets));
    const later = inspect(unreadable, { groupBefore: before });
    expect(later.controlGroup).toEqual(before);
    expect(later.threads).toBe(3);
    expect(later.warnings.join("\n")).toContain(
      "the CPUs that the control group /g allows could not be read this time",
    );
  });

  test.each([
    ["empty sets", { cpus: "", mems: "" }],
    ["sets of another machine", { cpus: "64-71", mems: "4" }],
    ["sets that are none", { cpus: "all", mems: "-1" }],
  ])("or has %s, forbids nothing: a process cannot be without CPUs and memory", (_, sets) => {
    const host = inspect(controlGroup("/g", { "/g": sets }));
    isWhole(host);
    expect(host.warnings.join("\n")).toMatch(/control group \/g (allows none|allows are unknown)/);
  });

  test("and one in which the guests are not, is of no concern", () => {
    const host = inspect(controlGroup("/g", { "/g": NODE_0 }), { isGroupOfGuests: false });
    isWhole(host);
    expect(host.controlGroup).toEqual({ path: null, cpus: null, memoryNodes: null });
    expect(host.warnings.join("\n")).not.toContain("control group");
  });
});
