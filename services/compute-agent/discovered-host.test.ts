import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CandidateSearch } from "../../core/candidates/best/candidate-search.ts";
import { searchOf } from "../../core/scheduling/host-request.ts";
import { asked, hostRequestOf } from "../../core/scheduling/request/some-request.ts";
import { readSettings } from "../../runtime/settings.ts";
import {
  controlGroup,
  makeSysroot,
  numaNode,
  sriovCard,
  twoSockets,
  writeSysroot,
} from "../../test/rigs/made-up-sysroot.ts";
import { host, viewOf } from "../../test/rigs/view-builders.ts";
import { treeOfReport } from "../conductor/tree-of.ts";
import { treeOf } from "./host-config.ts";
import type { LookAtHosts } from "./host-source.ts";
import { agentDeclaration, hostSourceOf } from "./settings.ts";

const GIB_KIB = 1024 ** 2;
const options = (...argv: readonly string[]) => {
  const read = readSettings(agentDeclaration, { argv: ["--agent-id", "a", "--conductors", "c:1", ...argv], env: {} });
  if (read.kind === "help") throw new Error("no help was asked for");
  return read.settings;
};

function totals({ hosts }: LookAtHosts): unknown {
  const providers = hosts.flatMap((host) => treeOf(host).providers);
  return Object.fromEntries(
    providers.map(({ name, inventories }) => [
      name,
      Object.fromEntries(Object.entries(inventories).map(([key, { total }]) => [key, total])),
    ]),
  );
}

function machine(): string {
  return makeSysroot(
    twoSockets(),
    numaNode(0, "0-1,4-5", 8 * GIB_KIB, { 2048: 512 }),
    numaNode(1, "2-3,6-7", 8 * GIB_KIB),
    sriovCard(),
  );
}

test("an agent's only host is the machine, with its tree and its CPU", () => {
  const seen = hostSourceOf(options("--discover", "--sysroot", machine(), "--host", "h")).look();
  expect(totals(seen)).toEqual({
    h: {},
    h_numa0: { VCPU: 4, MEMORY_MB: 8192, CUSTOM_MEMORY_PAGES_2048KB: 512 },
    h_numa1: { VCPU: 4, MEMORY_MB: 8192 },
    "h_numa1_0000:3b:00.0": { SRIOV_NET_VF: 2 },
  });
  expect(JSON.parse(treeOf(seen.hosts[0]!).hypervisor!.cpuInfo)).toEqual({
    model: "Made-up CPU",
    vendor: "GenuineIntel",
    topology: { cells: 2, sockets: 1, cores: 2, threads: 2 },
    features: ["fpu", "vmx", "avx2"],
  });
  expect(seen.warnings.join("\n")).toContain("the disk is unknown");
});

describe("the CPUs behind providers", () => {
  const layout = (...argv: readonly string[]) => {
    const source = hostSourceOf(options("--discover", "--sysroot", machine(), "--host", "h", ...argv));
    const [host] = source.look().hosts;
    const names = new Map(treeOf(host!).providers.map(({ uuid, name }) => [uuid, name]));
    const { places, cores } = source.layoutOf("h")!;
    return { places: places.map(({ provider, ...place }) => ({ name: names.get(provider), ...place })), cores };
  };
  const CORES = [0, 1, 2, 3].map((core) => [core, core + 4]);

  test("are those of its NUMA node in each set, with the sizes of its huge pages", () => {
    expect(layout("--cpu-shared-set", "0-1", "--cpu-dedicated-set", "2-5")).toEqual({
      places: [
        { name: "h_numa0", node: 0, shared: [0, 1], dedicated: [4, 5], pagesKib: [2_048] },
        { name: "h_numa1", node: 1, shared: [], dedicated: [2, 3], pagesKib: [] },
      ],
      cores: CORES,
    });
  });

  test("are those of the whole machine for the root of a flat tree, which leaves all CPUs to the kernel if no set is given", () => {
    const place = { name: "h", node: null, pagesKib: [2_048] };
    const sets = ["--cpu-shared-set", "0", "--cpu-dedicated-set", "7"];
    expect(layout("--flat", ...sets).places).toEqual([{ ...place, shared: [0], dedicated: [7] }]);
    expect(layout("--flat").places).toEqual([{ ...place, shared: null, dedicated: [] }]);
    expect(layout().places.map(({ shared }) => shared)).toEqual([
      [0, 1, 4, 5],
      [2, 3, 6, 7],
    ]);
  });
});

test("the devices behind a provider are those that guests get, and not the card itself", () => {
  const argv = ["--sysroot", machine(), "--host", "h", "--physical-networks", "physnet1:ens1f0"];
  const source = hostSourceOf(options("--discover", ...argv));
  const names = new Map(treeOf(source.look().hosts[0]!).providers.map(({ uuid, name }) => [uuid, name]));
  const devices = source.layoutOf("h")?.devices ?? [];
  expect(devices.map(({ provider, ...place }) => ({ name: names.get(provider), ...place }))).toEqual([
    {
      ...{ name: "h_numa1_0000:3b:00.0", resourceClass: "SRIOV_NET_VF", mdev: null, vendorInfo: "8086:154c" },
      ...{ addresses: ["0000:3b:02.0", "0000:3b:02.1"], physicalNetwork: "physnet1" },
    },
  ]);
});

test("a device that is passed through as a GPU is found by its class and its traits, and wrong specifications are refused", () => {
  const argv = ["--discover", "--sysroot", machine(), "--host", "h", "--pci-devices"];
  const source = hostSourceOf(options(...argv, "0000:3b:02.1=PGPU+CUSTOM_A100,8086:154C"));
  const { providers } = treeOf(source.look().hosts[0]!);
  const card = providers.find(({ name }) => name.endsWith("0000:3b:00.0"));
  expect(card?.inventories).toMatchObject({ PGPU: { total: 1 }, SRIOV_NET_VF: { total: 1 } });
  const devices = source.layoutOf("h")?.devices ?? [];
  expect(devices.find((one) => one.resourceClass === "PGPU")).toMatchObject({
    ...{ provider: card?.uuid, addresses: ["0000:3b:02.1"], mdev: null },
  });
  const gpus = hostSourceOf(options(...argv, "0000:3b:02.1=CUSTOM_GPU"));
  gpus.look();
  expect(gpus.layoutOf("h")).toMatchObject({
    deviceClasses: ["CUSTOM_GPU"],
    devices: [{ addresses: ["0000:3b:02.1"] }],
  });
  const without = hostSourceOf(options(...argv, "8086:ffff"));
  without.look();
  expect(without.layoutOf("h")).toMatchObject({ deviceClasses: [], devices: [] });
  expect(without.layoutOf("h")?.deviceProviders).toContain(card?.uuid);
  for (const wrong of [
    "10de:2204=",
    "10de:2204=CUSTOM_MEMORY_PAGES_2048KB",
    "10de:2204=VGPU",
    "10de:2204=PGPU+",
    "10de:2204=PGPU+COMPUTE_NODE",
    "10de=PGPU",
  ])
    expect(() => options(...argv, wrong)).toThrow("=CLASS+TRAIT");
});

test("the mediated devices behind a provider are those of the card's enabled type", () => {
  const types = "/sys/devices/pci0000:3a/0000:3b:00.0/mdev_supported_types/nvidia-35";
  const sysroot = makeSysroot(twoSockets(), numaNode(0, "0-7", 8 * GIB_KIB), sriovCard(), {
    [`${types}/available_instances`]: "4\n",
    [`${types}/devices`]: {},
  });
  const flags = ["--discover", "--sysroot", sysroot, "--host", "h", "--enabled-mdev-types", "nvidia-35"];
  const source = hostSourceOf(options(...flags));
  const { providers } = treeOf(source.look().hosts[0]!);
  const card = providers.find(({ name }) => name.endsWith("0000:3b:00.0"));
  expect(card?.inventories.VGPU?.total).toBe(4);
  expect(source.layoutOf("h")?.devices).toEqual([
    {
      ...{ provider: card?.uuid, resourceClass: "VGPU", addresses: [] },
      mdev: { parent: "0000:3b:00.0", type: "nvidia-35" },
    },
  ]);
});

describe("what the settings say of types of mediated devices", () => {
  const types = "/sys/devices/pci0000:3a/0000:3b:00.0/mdev_supported_types";
  const described = (heads: number) =>
    `num_heads=${heads}, frl_config=60, framebuffer=1024M, max_resolution=5120x2880, max_instance=16\n`;
  const sysroot = () =>
    makeSysroot(twoSockets(), numaNode(0, "0-7", 8 * GIB_KIB), sriovCard(), {
      [`${types}/nvidia-35/available_instances`]: "16\n",
      [`${types}/nvidia-35/description`]: described(2),
      [`${types}/nvidia-35/devices`]: {},
      [`${types}/nvidia-36/available_instances`]: "8\n",
      [`${types}/nvidia-36/description`]: described(4),
      [`${types}/nvidia-36/devices`]: {},
    });
  const source = (...flags: readonly string[]) =>
    hostSourceOf(
      options(
        "--discover",
        "--sysroot",
        sysroot(),
        "--host",
        "h",
        "--enabled-mdev-types",
        "nvidia-35,nvidia-36",
        ...flags,
      ),
    );

  test("becomes the class, the traits, the number and the displays of the cards that they name", () => {
    const own = source(
      ...["--mdev-classes", "nvidia-36=CUSTOM_VGPU_BIG", "--mdev-traits", "nvidia-36=CUSTOM_A100+HW_GPU_API_VULKAN"],
      ...["--mdev-max-instances", "nvidia-36=3,nvidia-35=1", "--mdev-device-addresses", "nvidia-36=0000:3B:00.0"],
    );
    const { providers } = treeOf(own.look().hosts[0]!);
    const card = providers.find(({ name }) => name.endsWith("0000:3b:00.0"));
    expect(card?.inventories).toMatchObject({ CUSTOM_VGPU_BIG: { total: 3 }, VGPU_DISPLAY_HEAD: { total: 12 } });
    expect(card?.traits).toEqual(["CUSTOM_A100", "HW_GPU_API_VULKAN"]);
    expect(own.layoutOf("h")).toMatchObject({
      deviceClasses: ["CUSTOM_VGPU_BIG"],
      devices: [
        {
          ...{ provider: card?.uuid, resourceClass: "CUSTOM_VGPU_BIG", addresses: [], headsOfEach: 4 },
          mdev: { parent: "0000:3b:00.0", type: "nvidia-36" },
        },
      ],
    });
  });

  test.each([
    [["--mdev-classes", "nvidia-99=VGPU"], "mdev-classes names nvidia-99, which enabled-mdev-types does not"],
    [["--mdev-max-instances", "nvidia-35=1,nvidia-35=2"], "mdev-max-instances names nvidia-35 twice"],
    [
      ["--mdev-device-addresses", "nvidia-35=0000:3b:00.0,nvidia-36=0000:3B:00.0"],
      "names card 0000:3b:00.0 for nvidia-35 and for nvidia-36: a card is divided into one type",
    ],
    [["--mdev-classes", "nvidia-35=GPU"], "TYPE=CLASS"],
    [["--mdev-traits", "nvidia-35=A100"], "TYPE=TRAIT+TRAIT"],
    [["--mdev-max-instances", "nvidia-35=0"], "TYPE=N"],
    [["--mdev-device-addresses", "nvidia-35=card0"], "TYPE=ADDRESS+ADDRESS"],
  ])("is refused when it contradicts itself: %j", (flags, reason) => {
    expect(() => source(...flags).look()).toThrow(reason);
  });
});

test("a port's request for bandwidth is served by an interface of its physical network, and by none that lacks it", () => {
  const offered = ["--physical-networks", "physnet1:ens1f0", "--resource-provider-bandwidths", "ens1f0::4000000"];
  const source = hostSourceOf(options("--discover", "--sysroot", machine(), "--host", "h", "--flat", ...offered));
  const report = treeOf(source.look().hosts[0]!);
  const names = new Map(report.providers.map(({ uuid, name }) => [uuid, name]));
  const tree = treeOfReport({ ...report, revision: 1 });
  if ("refused" in tree) throw new Error(tree.refused);
  const view = viewOf(
    tree.providers.flatMap(({ uuid, name, parent, inventories, traits }) => [
      { kind: "provider-put" as const, ...{ uuid, name, parent, root: tree.root, generation: 0 } },
      ...[...inventories].map(([resourceClass, inventory]) => ({
        ...{ kind: "inventory-put" as const, provider: uuid, resourceClass, inventory, used: 0 },
      })),
      ...[...traits].map((trait) => ({ kind: "trait-added" as const, provider: uuid, trait })),
    ]),
    host("h", tree.root),
  );
  const servedBy = (network: string, resources: Record<string, number>, vnicType = "NORMAL") => {
    const requiredTraits = [`CUSTOM_PHYSNET_${network}`, `CUSTOM_VNIC_TYPE_${vnicType}`];
    const port = { portId: "p", suffix: "_PORT0", resources, requiredTraits, provider: "", groupId: "" };
    const size = { vcpus: 1, memoryMib: 64, diskGib: 0, ephemeralGib: 0, swapMib: 0 };
    const flavor = { id: "f", name: "f", ...size, extraSpecs: {} };
    const wanted = searchOf(hostRequestOf(asked({}, {}, { flavor, portRequests: [port] })));
    const [found] = new CandidateSearch(view, { ...wanted, limit: 1 });
    return found?.mappings.get("_PORT0")?.map((uuid) => names.get(uuid));
  };
  const ingress = { NET_BW_IGR_KILOBIT_PER_SEC: 4_000_000 };
  expect(servedBy("PHYSNET1", ingress)).toEqual(["h_network_ens1f0"]);
  expect(servedBy("PHYSNET1", ingress, "DIRECT")).toEqual(["h_network_ens1f0"]);
  expect(servedBy("PHYSNET2", ingress)).toBeUndefined();
  expect(servedBy("PHYSNET1", { NET_BW_IGR_KILOBIT_PER_SEC: 4_000_001 })).toBeUndefined();
  expect(servedBy("PHYSNET1", { NET_BW_EGR_KILOBIT_PER_SEC: 1 })).toBeUndefined();
});

test.each(["ens1f0:1", "ens1f0:1:2:3", "ens1f0:-1:1", "ens1f0:2147483648:1", "a b:1:1"])(
  "the bandwidth %j is refused",
  (wrong) => {
    expect(() => options("--discover", "--resource-provider-bandwidths", wrong)).toThrow("INTERFACE:EGRESS:INGRESS");
  },
);

test("a host that is read again gets new values, and keeps those that can no longer be read", () => {
  const sysroot = machine();
  const source = hostSourceOf(options("--discover", "--sysroot", sysroot, "--host", "h", "--flat"));
  const before = source.look();
  writeFileSync(join(sysroot, "sys/devices/system/cpu/online"), "0-5\n");
  rmSync(join(sysroot, "proc/meminfo"));
  rmSync(join(sysroot, "sys/devices/system/node"), { recursive: true });
  const after = source.look();
  expect(totals(before)).toMatchObject({ h: { VCPU: 8, MEMORY_MB: 16_384 } });
  expect(totals(after)).toMatchObject({ h: { VCPU: 6, MEMORY_MB: 16_384 } });
  expect(after.warnings.join("\n")).toContain("the memory could not be read this time: the last known value is kept");
});

describe("a machine whose control group allows a part of it", () => {
  const NODES = "sys/devices/system/node";
  const CPUS = "sys/fs/cgroup/g/cpuset.cpus.effective";
  const part = () => {
    const group = controlGroup("/g", { "/g": { cpus: "0,4", mems: "0" }, "": { cpus: "0-7", mems: "0-1" } });
    const files = Object.assign({}, twoSockets(), group);
    return makeSysroot(files, numaNode(0, "0-1,4-5", 8 * GIB_KIB), numaNode(1, "2-3,6-7", 8 * GIB_KIB));
  };
  const sourceOf = (sysroot: string, ...more: readonly string[]) =>
    hostSourceOf(options("--discover", "--sysroot", sysroot, "--host", "h", ...more));

  test("offers this part, follows the group while the agent runs, and keeps the part while the group cannot be read", () => {
    const sysroot = part();
    const source = sourceOf(sysroot);
    const offered = { h: {}, h_numa0: { VCPU: 2, MEMORY_MB: 8192 } };
    expect(totals(source.look())).toEqual(offered);

    rmSync(join(sysroot, CPUS));
    mkdirSync(join(sysroot, CPUS));
    rmSync(join(sysroot, NODES), { recursive: true });
    // A link that leads out of the sysroot cannot be read.
    symlinkSync("/etc", join(sysroot, NODES));
    const unread = source.look();
    expect(totals(unread)).toEqual(offered);
    expect(unread.warnings.join("\n")).toContain("allows could not be read this time: the last known ones are kept");
    expect(source.layoutOf("h")?.places).toMatchObject([{ node: 0 }]);

    rmSync(join(sysroot, CPUS), { recursive: true });
    rmSync(join(sysroot, NODES));
    writeSysroot(sysroot, controlGroup("/g", { "/g": { cpus: "0-3", mems: "0-1" } }));
    writeSysroot(sysroot, numaNode(0, "0-1,4-5", 8 * GIB_KIB), numaNode(1, "2-3,6-7", 8 * GIB_KIB));
    const wider = source.look();
    expect(totals(wider)).toEqual({
      ...{ h: {}, h_numa0: { VCPU: 2, MEMORY_MB: 8192 }, h_numa1: { VCPU: 2, MEMORY_MB: 8192 } },
    });

    writeSysroot(sysroot, controlGroup("/g", { "/g": { cpus: "2", mems: "1" } }));
    const narrower = source.look();
    expect(totals(narrower)).toEqual({ h: {}, h_numa1: { VCPU: 1, MEMORY_MB: 8192 } });
    expect(narrower.warnings.join("\n")).not.toContain("could not be read this time");
  });

  test("refuses sets with CPUs outside of it by their names", () => {
    expect(() => sourceOf(part(), "--cpu-shared-set", "0-2,4", "--cpu-dedicated-set", "4").look()).toThrow(
      "cpu-shared-set names CPUs that the control group /g does not allow: 1-2; it allows 0,4",
    );
    expect(() => sourceOf(part(), "--cpu-dedicated-set", "4-5").look()).toThrow("cpu-dedicated-set names CPUs");
    expect(totals(sourceOf(part(), "--cpu-dedicated-set", "4").look())).toMatchObject({ h_numa0: { PCPU: 1 } });
  });

  test("offers the rest of its sets when it loses some of their CPUs while the agent runs, which a new agent refuses", () => {
    const sysroot = part();
    const sets = ["--cpu-shared-set", "0", "--cpu-dedicated-set", "4"];
    const source = sourceOf(sysroot, ...sets);
    expect(totals(source.look())).toMatchObject({ h_numa0: { VCPU: 1, PCPU: 1 } });
    writeFileSync(join(sysroot, CPUS), "0\n");
    writeFileSync(join(sysroot, "proc/meminfo"), `MemTotal: ${32 * GIB_KIB} kB\n`);
    const seen = source.look();
    expect(totals(seen)).toEqual({ h: {}, h_numa0: { VCPU: 1, MEMORY_MB: 16_384 } });
    expect(source.layoutOf("h")?.places).toMatchObject([{ shared: [0], dedicated: [] }]);
    expect(seen.warnings.join("\n")).toContain(
      "cpu-dedicated-set names CPUs that the control group /g does not allow: 4; it allows 0",
    );
    expect(() => sourceOf(sysroot, ...sets).look()).toThrow("cpu-dedicated-set names CPUs");

    writeFileSync(join(sysroot, CPUS), "0,4\n");
    writeFileSync(join(sysroot, "sys/devices/system/cpu/online"), "0-3\n");
    expect(source.look().warnings.join("\n")).toContain("cpu-dedicated-set names CPUs that are not online: 4");
    writeFileSync(join(sysroot, "sys/devices/system/cpu/online"), "0-7\n");
    expect(totals(source.look())).toMatchObject({ h_numa0: { VCPU: 1, PCPU: 1 } });
  });

  test("offers all of it for containers, which LXD starts in groups of their own", () => {
    expect(totals(sourceOf(part(), "--driver", "lxd").look())).toMatchObject({
      ...{ h_numa0: { VCPU: 4, MEMORY_MB: 8192 }, h_numa1: { VCPU: 4, MEMORY_MB: 8192 } },
    });
  });
});

test("a device keeps its provider when its host changes from a flat tree to one of NUMA nodes", () => {
  const card = (...flags: readonly string[]) => {
    const { hosts } = hostSourceOf(options("--discover", "--sysroot", machine(), "--host", "h", ...flags)).look();
    return treeOf(hosts[0]!).providers.find(({ name }) => name.endsWith("3b:00.0"))?.uuid;
  };
  expect(card()).toBeDefined();
  expect(card("--flat")).toBe(card());
});

test("the agent's own machine has its own name and architecture", () => {
  const [host] = hostSourceOf(options("--discover")).look().hosts;
  expect(host).toMatchObject({
    name: hostname(),
    hypervisor: { supported_instances: [[expect.any(String), "fake", "hvm"]] },
  });
});

test.each([[[]], [["--discover", "--hosts", "2"]], [["--hosts", "2", "--hosts-file", "f"]]])(
  "exactly one source of hosts must be given, unlike %j",
  (argv) => {
    expect(() => hostSourceOf(options(...argv))).toThrow("give one of BERTH_HOSTS_FILE");
  },
);
