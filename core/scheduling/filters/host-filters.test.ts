import { describe, expect, test } from "vitest";
import { sceneOf, specWith } from "../../../test/rigs/facts-builders.ts";
import { type FilterCase, passing, settingsOf } from "../../../test/rigs/filter-cases.ts";
import { provider } from "../../../test/rigs/view-builders.ts";
import { providerUuid } from "../../ledger/ids.ts";
import type { FilterName } from "./filter-names.ts";
import { bindFilters, hostFilters, refusedBy } from "./host-filters.ts";

const kvm = (version = 0, cpuInfo = {}) => ({
  hypervisor: {
    type: "QEMU",
    version,
    supportedInstances: [
      ["x86_64", "kvm", "hvm"],
      ["i686", "kvm", "hvm"],
    ] as [string, string, string][],
    cpuInfo,
  },
});
const image = (imageProperties: Record<string, string>) => specWith(9, { imageProperties });

const CASES = {
  AllHostsFilter: [
    { title: "passes a host that is down", hosts: { a: { up: false } }, spec: specWith(9), passes: "a" },
  ],
  ComputeFilter: [
    {
      title: "passes hosts that are up and enabled",
      hosts: { a: {}, b: { up: false }, c: { disabled: true } },
      spec: specWith(9),
      passes: "a",
    },
    {
      title: "asks nothing of a host that was forced",
      hosts: { b: { up: false } },
      spec: specWith(9, { forcedHost: "b" }),
      passes: "b",
    },
  ],
  ImagePropertiesFilter: [
    { title: "passes all for an image that names nothing", hosts: { a: {}, b: kvm() }, spec: image({}), passes: "a b" },
    {
      title: "wants architecture, hypervisor and mode in one entry",
      hosts: { a: kvm(), b: {} },
      spec: image({ hw_architecture: "x86_64", img_hv_type: "kvm", hw_vm_mode: "hvm" }),
      passes: "a",
    },
    {
      title: "reads other names of the same",
      hosts: { a: kvm() },
      spec: image({ hw_architecture: "AMD64", hw_vm_mode: "hv" }),
      passes: "a",
    },
    {
      title: "refuses another architecture",
      hosts: { a: kvm() },
      spec: image({ hw_architecture: "aarch64" }),
      passes: "",
    },
    {
      title: "compares versions",
      hosts: { a: kvm(6_000_000), b: kvm(5_002_000), c: kvm() },
      spec: image({ img_hv_type: "kvm", img_hv_requested_version: ">=5.2, !=6.0" }),
      passes: "b c",
    },
    {
      title: "uses the default architecture",
      hosts: { a: kvm() },
      spec: image({}),
      settings: { image_properties_default_architecture: "ppc64" },
      passes: "",
    },
    {
      title: "compares address bits where the host tells them",
      hosts: { a: kvm(0, { maxphysaddr: { bits: 40 } }), b: kvm(0, { maxphysaddr: { bits: 46 } }), c: kvm() },
      spec: image({ img_hv_type: "kvm", hw_maxphysaddr_bits: "42" }),
      passes: "b c",
    },
  ],
  IsolatedHostsFilter: [
    {
      title: "keeps isolated images and hosts to each other",
      hosts: { a: {}, b: {} },
      spec: specWith(9, { imageRef: "secret" }),
      settings: { isolated_hosts: "a", isolated_images: "secret" },
      passes: "a",
    },
    {
      title: "keeps other images away",
      hosts: { a: {}, b: {} },
      spec: specWith(9, { imageRef: "plain" }),
      settings: { isolated_hosts: "a", isolated_images: "secret" },
      passes: "b",
    },
    {
      title: "lets other images in without the restriction",
      hosts: { a: {}, b: {} },
      spec: specWith(9, { imageRef: "plain" }),
      settings: { isolated_hosts: "a", isolated_images: "secret", restrict_isolated_hosts_to_isolated_images: false },
      passes: "a b",
    },
    {
      title: "keeps everything from isolated hosts without isolated images",
      hosts: { a: {}, b: {} },
      spec: specWith(9, { imageRef: "" }),
      settings: { isolated_hosts: "a" },
      passes: "b",
    },
  ],
  MetricsFilter: [
    {
      title: "passes hosts that report every metric",
      hosts: { a: { hypervisor: { metrics: { load: 1, heat: 0 } } }, b: { hypervisor: { metrics: { load: 1 } } } },
      spec: specWith(9),
      settings: { metrics_weight_setting: "load=-1,heat=-1" },
      passes: "a",
    },
  ],
  ComputeCapabilitiesFilter: [
    {
      title: "follows a path into cpu_info",
      hosts: { a: kvm(0, { arch: "x86_64", features: ["aes", "avx"] }), b: kvm(0, { arch: "aarch64" }), c: {} },
      spec: specWith(9, {
        extraSpecs: { "capabilities:cpu_info:arch": "x86_64", "capabilities:cpu_info:features": "<in> avx" },
      }),
      passes: "a",
    },
    {
      title: "reads keys without scope that hosts have",
      hosts: { a: kvm(7_000_000), b: kvm(5_000_000) },
      spec: specWith(9, { extraSpecs: { hypervisor_version: ">= 6000000", ssd: "true" } }),
      passes: "a",
    },
    {
      title: "passes over other scopes",
      hosts: { a: {} },
      spec: specWith(9, { extraSpecs: { "resources:VCPU": "1", "quota:x": "1" } }),
      passes: "a",
    },
    {
      title: "takes hw:maxphysaddr_bits for a capability",
      hosts: { a: kvm(0, { maxphysaddr: { bits: 46 } }), b: kvm(0, { maxphysaddr: { bits: 40 } }) },
      spec: specWith(9, { extraSpecs: { "hw:maxphysaddr_bits": "42" } }),
      passes: "a",
    },
  ],
  NUMATopologyFilter: [
    {
      title: "wants as many nodes as asked",
      hosts: { a: kvm(0, { topology: { cells: 2 } }), b: kvm(0, { topology: { cells: 1 } }), c: {} },
      spec: specWith(9, { extraSpecs: { "hw:numa_nodes": "2" } }),
      passes: "a",
    },
    {
      title: "wants threads for a policy that requires them",
      hosts: { a: kvm(0, { topology: { threads: 2 } }), b: kvm(0, { topology: { threads: 1 } }) },
      spec: specWith(9, { extraSpecs: { "hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require" } }),
      passes: "a",
    },
    {
      title: "takes a single node for granted",
      hosts: { a: {} },
      spec: specWith(9, { extraSpecs: { "hw:numa_nodes": "1" } }),
      passes: "a",
    },
  ],
  PciPassthroughFilter: [
    {
      title: "wants as many free devices as asked",
      hosts: { a: { inventories: { CUSTOM_PCI_GPU: 4 } }, b: { inventories: { CUSTOM_PCI_GPU: 1 } }, c: {} },
      spec: specWith(9, { extraSpecs: { "pci_passthrough:alias": "gpu:1, gpu:1" } }),
      passes: "a",
    },
    {
      title: "takes the class from the setting",
      hosts: { a: { inventories: { CUSTOM_PCI_8086_1520: 4 } } },
      spec: specWith(9, { extraSpecs: { "pci_passthrough:alias": "nic:2" } }),
      settings: { pci_aliases: "nic=CUSTOM_PCI_8086_1520" },
      passes: "a",
    },
    {
      title: "passes no host for an invalid alias",
      hosts: { a: {} },
      spec: specWith(9, { extraSpecs: { "pci_passthrough:alias": "gpu" } }),
      passes: "",
    },
  ],
} satisfies Partial<Record<FilterName, readonly FilterCase[]>>;

describe("host filters", () => {
  const cases = Object.entries(CASES).flatMap(([filter, of]) =>
    of.map((one) => ({ filter: filter as FilterName, one })),
  );
  test.each(cases.map(({ filter, one }) => [filter, one.title, one] as const))("%s %s", (filter, _, one) => {
    expect(passing(filter, one)).toBe(one.passes);
  });

  test("NUMATopologyFilter leaves hosts with NUMA providers to the search", () => {
    const scene = sceneOf({ a: {} });
    scene.view.applyAll(provider("a-node0", { VCPU: 4 }, { parent: "a", traits: ["HW_NUMA_ROOT"] }));
    const asked = specWith(9, { extraSpecs: { "hw:numa_nodes": "2" } });
    expect(passing("NUMATopologyFilter", { title: "", hosts: { a: {} }, spec: asked, passes: "a" }, scene)).toBe("a");
  });

  test("are applied in the order of the setting, and the first that refuses is named", () => {
    const scene = sceneOf({ a: { up: false } });
    const facts = scene.facts.at(scene.view.slots.find(providerUuid("a")))!;
    const spec = specWith(9, { availabilityZone: "z" });
    const first = (enabled: string) =>
      refusedBy(bindFilters(hostFilters(settingsOf({ enabled_filters: enabled })), spec, scene).kind, facts);
    expect(first("ComputeFilter,AvailabilityZoneFilter")).toEqual({ filter: "ComputeFilter", reason: "down" });
    expect(first("AvailabilityZoneFilter,ComputeFilter")?.filter).toBe("AvailabilityZoneFilter");
    expect(first("")).toBeNull();
  });

  test("are made once for the same settings, so that verdicts can be remembered for each filter", () => {
    const settings = settingsOf({});
    expect(hostFilters(settings)).toBe(hostFilters(settings));
    expect(hostFilters(settings).map(({ name }) => name)).toEqual([...settings.enabledFilters, "MetricsFilter"]);
  });
});
