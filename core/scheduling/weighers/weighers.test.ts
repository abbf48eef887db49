import { describe, expect, test } from "vitest";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { aggregate, sceneOf, specWith } from "../../../test/rigs/facts-builders.ts";
import { settingsOf } from "../../../test/rigs/filter-cases.ts";
import { provider } from "../../../test/rigs/view-builders.ts";
import { BoundRequest } from "../../candidates/bound/bound-request.ts";
import { OPEN_HOSTS } from "../../candidates/request.ts";
import { providerUuid } from "../../ledger/ids.ts";
import type { HostRequest } from "../host-request.ts";
import { translateFlavor } from "../request/translate-request.ts";
import type { StoredSchedulingSettings } from "../scheduling-settings.ts";
import { crossCellMove } from "./cross-cell-move.ts";
import { GpuFragmentation } from "./gpu-fragmentation.ts";
import { hostMultiplier } from "./host-multiplier.ts";
import type { AbsoluteWeigher, HostBatch, WeighedBy, Weigher } from "./weigher.ts";
import { WeigherSet } from "./weigher-set.ts";
import { WEIGHER_NAMES, type WeigherName } from "./weighers.ts";

type Scene = ReturnType<typeof sceneOf>;

const nothing = (name: string): AbsoluteWeigher => ({ name, kind: "absolute", addTo() {} });
const set = new WeigherSet({
  buildFailure: nothing("build_failure"),
  ownSlice: nothing("own_slice"),
  recentPicks: nothing("recent_picks"),
  gpuFragmentation: new GpuFragmentation(),
});

function weigherOf(name: WeigherName, settings: StoredSchedulingSettings = {}): WeighedBy {
  return set.of(settingsOf(settings)).find(({ weigher }) => weigher.name === name)!;
}

function hostRequestOf(spec: ServerSpec): HostRequest {
  const translated = translateFlavor(spec.flavor!);
  if (translated.kind !== "host-request") throw new Error("the flavor of a test asks what it should not");
  return translated.hostRequest;
}

/** The weigher's result for each host of the scene, rounded, or null when the weigher does not apply. */
function weights(weigher: Weigher, scene: Scene, spec: ServerSpec, hosts: readonly string[]): number[] | null {
  const { name, view, facts } = scene;
  const { groups, groupPolicy } = hostRequestOf(spec);
  const request = new BoundRequest(view, { groups, groupPolicy, trees: OPEN_HOSTS, limit: 1 });
  const roots = Int32Array.from(hosts, (host) => view.slots.find(providerUuid(host)));
  const batch: HostBatch = { cell: name, request, roots, count: roots.length, facts, spec };
  // The offset of 1 shows that the weigher heeds it.
  const sums = new Float64Array(roots.length + 1);
  if (weigher.kind === "absolute") weigher.addTo(batch, sums, 1, 1);
  else if (!weigher.weigh(batch, sums, 1)) return null;
  expect(sums[0]).toBe(0);
  return Array.from(sums.subarray(1), (weight) => Math.round(weight * 1_000) / 1_000 + 0);
}

const asks = (resources: Readonly<Record<string, number>>, over: Partial<ServerSpec> = {}) => {
  const none = { "resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0" };
  const asked = Object.entries(resources).map(([name, amount]) => [`resources:${name}`, `${amount}`]);
  return specWith(9, { ...over, extraSpecs: { ...none, ...Object.fromEntries(asked) } });
};
const one = asks({ VCPU: 1 });
const group = (policy: string) => ({ group: { uuid: "group-1", policy, maxServerPerHost: 0 } });

describe("weighers", () => {
  const scene = sceneOf({
    a: {
      inventories: { VCPU: 8, MEMORY_MB: 512, DISK_GB: 10 },
      hypervisor: { version: 6_000_000, metrics: { load: 2, heat: 1 } },
    },
    b: {
      inventories: { VCPU: 4, MEMORY_MB: 1024, DISK_GB: 50 },
      hypervisor: { metrics: { load: 1 } },
      builds: [specWith(1), specWith(2)],
    },
    c: {
      inventories: { VCPU: 2 },
      servers: [specWith(3, { ...group("soft-affinity"), imageProperties: { os: "x", hw: "1" } })],
      builds: [specWith(4, { ...group("soft-affinity"), imageProperties: { os: "x" } })],
    },
  });

  test.each<[WeigherName, ServerSpec, StoredSchedulingSettings, number[] | null]>([
    ["cpu", one, {}, [8, 4, 2]],
    ["ram", asks({ MEMORY_MB: 1 }), {}, [512, 1024, 0]],
    ["ram", one, {}, null],
    ["disk", asks({ DISK_GB: 1 }), {}, [10, 50, 0]],
    ["io_ops", one, {}, [0, 2, 1]],
    ["num_instances", one, {}, [0, 2, 2]],
    ["hypervisor_version", one, {}, [6_000_000, 0, 0]],
    ["soft_affinity", asks({ VCPU: 1 }, group("soft-affinity")), {}, [0, 0, 2]],
    ["soft_anti_affinity", asks({ VCPU: 1 }, group("soft-anti-affinity")), {}, [0, 0, -2]],
    ["soft_affinity", asks({ VCPU: 1 }, group("soft-anti-affinity")), {}, null],
    ["soft_affinity", one, {}, null],
    ["metrics", one, {}, null],
    ["metrics", one, { metrics_weight_setting: "load=2,heat=-1" }, [3, -10_000, -10_000]],
    ["metrics", one, { metrics_weight_setting: "load=2", metrics_weight_of_unavailable: -1 }, [4, 2, -1]],
    ["image_props", asks({ VCPU: 1 }, { imageProperties: { os: "x", hw: "1" } }), {}, [0, 0, 3]],
    [
      "image_props",
      asks({ VCPU: 1 }, { imageProperties: { os: "x", hw: "1" } }),
      { image_props_weight_setting: "hw=5" },
      [0, 0, 5],
    ],
    ["image_props", one, {}, null],
    ["pci", one, {}, null],
    ["best_fit", asks({ VCPU: 2 }), {}, [-0.75, -0.5, 0]],
    ["best_fit", asks({ VCPU: 2, DISK_GB: 10 }), { best_fit_classes: "DISK_GB" }, [0, -0.8, 0]],
  ])("%s", (name, spec, settings, expected) => {
    expect(weights(weigherOf(name, settings).weigher, scene, spec, ["a", "b", "c"])).toEqual(expected);
  });

  test("pci prefers hosts with fewer devices left, from none to a hundred", () => {
    const devices = sceneOf({
      a: {},
      b: { inventories: { VCPU: 8, CUSTOM_PCI_NIC: 4 } },
      c: { inventories: { VCPU: 8, CUSTOM_PCI_NIC: 500 } },
    });
    devices.view.applyAll(provider("b-gpu", { CUSTOM_PCI_GPU: 2 }, { parent: "b" }));
    expect(weights(weigherOf("pci").weigher, devices, one, ["a", "b", "c"])).toEqual([100, 94, 1]);
    devices.view.applyAll(provider("a-gpu", { PGPU: 3 }, { parent: "a" }));
    const aliased = weigherOf("pci", { pci_aliases: "gpu=PGPU" }).weigher;
    expect(weights(aliased, devices, one, ["a", "b", "c"])).toEqual([97, 94, 1]);
  });

  test("cross_cell_move prefers the cell that the server is in", () => {
    expect(weights(crossCellMove("cell-1"), scene, one, ["a", "b"])).toEqual([1, 1]);
    expect(weights(crossCellMove("cell-2"), scene, one, ["a", "b"])).toEqual([-1, -1]);
  });

  test("gpu_fragmentation keeps GPUs whole for servers that need whole ones, once it has seen such servers", () => {
    const gpus = sceneOf({ cut: { inventories: { VCPU: 64 } }, whole: { inventories: { VCPU: 64 } }, none: {} });
    for (const [host, used] of Object.entries({ cut: 500, whole: 0 })) {
      gpus.view.applyAll(provider(`${host}-gpu0`, { CUSTOM_GPU_MILLI: 1_000 }, { parent: host }));
      gpus.view.applyAll(provider(`${host}-gpu1`, { CUSTOM_GPU_MILLI: 1_000 }, { parent: host, used }));
    }
    const weigher = new GpuFragmentation(() => [gpus.view]);
    const half = asks({ VCPU: 1, CUSTOM_GPU_MILLI: 500 });
    expect(weights(weigher, gpus, half, ["cut", "whole", "none"])).toEqual([0, 0, 0]);
    const whole1 = hostRequestOf(asks({ VCPU: 8, CUSTOM_GPU_MILLI: 1_000 })).groups;
    for (let index = 0; index < 40; index += 1)
      weigher.arrive(index % 4 === 0 ? hostRequestOf(half).groups : whole1, gpus.view);
    expect(weigher.version).toBeGreaterThan(0);
    const [cut, whole, none] = weights(weigher, gpus, half, ["cut", "whole", "none"])!;
    expect(cut).toBeGreaterThan(whole!);
    expect(none).toBe(0);
  });
});

test("gpu_fragmentation keeps the only host with room for a large server free", () => {
  const gpus = sceneOf({ large: { inventories: { VCPU: 64 } }, small: { inventories: { VCPU: 64 } } });
  for (const [host, count] of Object.entries({ large: 4, small: 1 }))
    for (let gpu = 0; gpu < count; gpu += 1)
      gpus.view.applyAll(provider(`${host}-gpu${gpu}`, { PGPU: 1 }, { parent: host }));
  const one = asks({ VCPU: 1, PGPU: 1 });
  const four = hostRequestOf(asks({ VCPU: 8, PGPU: 4 })).groups;
  const weigher = new GpuFragmentation(() => [gpus.view]);
  for (let index = 0; index < 40; index += 1)
    weigher.arrive(index % 4 === 0 ? four : hostRequestOf(one).groups, gpus.view);
  const [large, small] = weights(weigher, gpus, one, ["large", "small"])!;
  expect(small).toBeGreaterThan(large!);
});

test("gpu_fragmentation keeps room for large servers without GPUs, the more the scarcer it is, also on hosts without GPUs", () => {
  const hosts = (large: number) => ({
    gpus: { inventories: { VCPU: 64 } },
    small: { inventories: { VCPU: 28 } },
    ...Object.fromEntries(Array.from({ length: large }, (_, at) => [`large${at}`, { inventories: { VCPU: 32 } }])),
  });
  const advantageOfSmall = (large: number): number => {
    const scene = sceneOf(hosts(large));
    scene.view.applyAll(provider("gpu0", { PGPU: 1 }, { parent: "gpus" }));
    const weigher = new GpuFragmentation(() => [scene.view]);
    const one = asks({ VCPU: 4 });
    for (let index = 0; index < 40; index += 1)
      weigher.arrive(hostRequestOf(index % 20 === 0 ? asks({ VCPU: 32 }) : one).groups, scene.view);
    const [small, first] = weights(weigher, scene, one, ["small", "large0"])!;
    return small! - first!;
  };
  expect(advantageOfSmall(100)).toBeGreaterThan(0);
  expect(advantageOfSmall(1)).toBeGreaterThan(advantageOfSmall(100));
});

describe("multipliers", () => {
  const scene = sceneOf({ a: {}, b: {}, c: {} }, [
    aggregate(1, { ram_weight_multiplier: "3", cpu_weight_multiplier: "much" }, ["a", "b"]),
    aggregate(2, { ram_weight_multiplier: "-1.5" }, ["b"]),
  ]);
  const of = (name: WeigherName, host: string) =>
    hostMultiplier(weigherOf(name), scene.facts)?.(scene.view.slots.find(providerUuid(host)));

  test("are the lowest of a host's aggregates, or the global one", () => {
    expect([of("ram", "a"), of("ram", "b"), of("ram", "c")]).toEqual([3, -1.5, 1]);
  });

  test("are the global one where an aggregate's value is not a number, or no aggregate names the weigher", () => {
    expect(of("cpu", "a")).toBe(1);
    expect(of("disk", "a")).toBeUndefined();
  });

  test("exist for every weigher by its name, with the same list for the same settings", () => {
    const settings = settingsOf({ ram_weight_multiplier: 7 });
    const weighed = set.of(settings);
    expect(set.of(settings)).toBe(weighed);
    expect(weighed.map(({ weigher }) => weigher.name).sort()).toEqual(
      WEIGHER_NAMES.filter((name) => name !== "cross_cell_move").sort(),
    );
    for (const { weigher, option } of weighed) expect(option).toBe(`${weigher.name}_weight_multiplier`);
    expect(weighed.find(({ weigher }) => weigher.name === "ram")?.multiplier).toBe(7);
  });
});
