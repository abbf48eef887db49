import { describe, expect, it } from "vitest";
import fc from "../../../test/rigs/property.ts";
import { resourceClass } from "../../ledger/ids.ts";
import type { HostRequest } from "../host-request.ts";
import { describeRequestRefusal } from "./request-refusal.ts";
import { asked, hostRequestOf, type Specs } from "./some-request.ts";
import { translateResources } from "./translate-request.ts";

/** The host request as plain text. */
function shown({ groups, rootRules, sameSubtree, apart }: HostRequest): Record<string, unknown> {
  const traits = (required: Iterable<string>, forbidden: Iterable<string>) => [
    ...required,
    ...[...forbidden].filter((name) => name !== "COMPUTE_STATUS_DISABLED").map((name) => `!${name}`),
  ];
  const root = rootRules ? traits(rootRules.requiredTraits, rootRules.forbiddenTraits).join(" ") : "";
  return {
    ...Object.fromEntries(
      groups.map((group) => [
        group.suffix,
        [
          ...[...group.resources].map(([name, amount]) => `${name}=${amount}`),
          ...traits(group.requiredTraits, group.forbiddenTraits),
        ].join(" "),
      ]),
    ),
    ...(root !== "" && { root }),
    ...(sameSubtree && { sameSubtree: sameSubtree.map((list) => list.join()) }),
    ...(apart && { apart: apart.map((list) => list.join()) }),
  };
}
const SIZE = "VCPU=4 MEMORY_MB=4096 DISK_GB=10";

const TRANSLATIONS: readonly [string, Specs, Specs, Record<string, unknown>][] = [
  ["dedicated CPUs", { "hw:cpu_policy": "dedicated" }, {}, { "": "PCPU=4 MEMORY_MB=4096 DISK_GB=10" }],
  ["shared CPUs", { "hw:cpu_policy": "shared" }, {}, { "": SIZE }],
  [
    "dedicated and shared CPUs in one server",
    { "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-1" },
    {},
    { "": "VCPU=2 PCPU=2 MEMORY_MB=4096 DISK_GB=10" },
  ],
  [
    "all CPUs but one dedicated",
    { "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0" },
    {},
    { "": "VCPU=1 PCPU=3 MEMORY_MB=4096 DISK_GB=10" },
  ],
  [
    "a CPU for the emulator",
    { "hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate" },
    {},
    { "": "PCPU=5 MEMORY_MB=4096 DISK_GB=10" },
  ],
  ["dedicated CPUs of the image", {}, { hw_cpu_policy: "dedicated" }, { "": "PCPU=4 MEMORY_MB=4096 DISK_GB=10" }],
  [
    "threads kept apart",
    { "hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "isolate" },
    {},
    { "": "PCPU=4 MEMORY_MB=4096 DISK_GB=10 !HW_CPU_HYPERTHREADING" },
  ],
  [
    "threads required by the image where the flavor only prefers",
    { "hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "prefer" },
    { hw_cpu_thread_policy: "require" },
    { "": "PCPU=4 MEMORY_MB=4096 DISK_GB=10 HW_CPU_HYPERTHREADING" },
  ],
  [
    "NUMA nodes, evenly",
    { "hw:numa_nodes": "2" },
    {},
    { _NUMA0: "VCPU=2 MEMORY_MB=2048", _NUMA1: "VCPU=2 MEMORY_MB=2048", "": "DISK_GB=10", apart: ["_NUMA0,_NUMA1"] },
  ],
  [
    "NUMA nodes, as laid out, with CPUs of both kinds",
    {
      "hw:numa_nodes": "2",
      "hw:numa_cpus.0": "0-2",
      "hw:numa_mem.0": "3072",
      "hw:numa_cpus.1": "3",
      "hw:numa_mem.1": "1024",
      "hw:cpu_policy": "mixed",
      "hw:cpu_dedicated_mask": "0,3",
      "hw:cpu_thread_policy": "require",
    },
    {},
    {
      _NUMA0: "VCPU=2 PCPU=1 MEMORY_MB=3072",
      _NUMA1: "PCPU=1 MEMORY_MB=1024",
      "": "DISK_GB=10",
      root: "HW_CPU_HYPERTHREADING",
      apart: ["_NUMA0,_NUMA1"],
    },
  ],
  ["large pages", { "hw:mem_page_size": "large" }, {}, { "": `${SIZE} CUSTOM_MEMORY_PAGES_LARGE` }],
  [
    "pages of a size, of each NUMA node",
    { "hw:mem_page_size": "2MB", "hw:numa_nodes": "2" },
    {},
    {
      _NUMA0: "VCPU=2 MEMORY_MB=2048 CUSTOM_MEMORY_PAGES_2048KB=1024",
      _NUMA1: "VCPU=2 MEMORY_MB=2048 CUSTOM_MEMORY_PAGES_2048KB=1024",
      "": "DISK_GB=10",
      apart: ["_NUMA0,_NUMA1"],
    },
  ],
  [
    "pages of the size that the image chooses",
    { "hw:mem_page_size": "any" },
    { hw_mem_page_size: "1048576" },
    { "": "CUSTOM_MEMORY_PAGES_1048576KB=4 VCPU=4 MEMORY_MB=4096 DISK_GB=10" },
  ],
  [
    "pages alone, for hosts whose pages are reserved out of MEMORY_MB",
    { "hw:mem_page_size": "1GB", "resources:MEMORY_MB": "0" },
    {},
    { "": "CUSTOM_MEMORY_PAGES_1048576KB=4 VCPU=4 DISK_GB=10" },
  ],
  ["ordinary pages", { "hw:mem_page_size": "small" }, {}, { "": SIZE }],
  ["a VGPU", { "resources:VGPU": "1" }, {}, { "": `VGPU=1 ${SIZE}` }],
  [
    "a VGPU at the guest's NUMA node",
    { "resources:VGPU": "1", "hw:numa_nodes": "1", "hw:pci_numa_affinity_policy": "required" },
    {},
    {
      _NUMA0: "VCPU=4 MEMORY_MB=4096",
      _VGPU: "VGPU=1",
      "": "DISK_GB=10",
      sameSubtree: ["_NUMA0,_VGPU"],
    },
  ],
  [
    "a VGPU with displays at the guest's NUMA node",
    {
      "resources:VGPU": "1",
      "resources:VGPU_DISPLAY_HEAD": "2",
      "hw:numa_nodes": "1",
      "hw:pci_numa_affinity_policy": "required",
    },
    {},
    {
      _NUMA0: "VCPU=4 MEMORY_MB=4096",
      _VGPU: "VGPU=1 VGPU_DISPLAY_HEAD=2",
      "": "DISK_GB=10",
      sameSubtree: ["_NUMA0,_VGPU"],
    },
  ],
  [
    "devices at the same socket",
    { "hw:pci_numa_affinity_policy": "socket" },
    {},
    { "": SIZE, root: "COMPUTE_SOCKET_PCI_NUMA_AFFINITY" },
  ],
  [
    "one subtree",
    {
      resources_A: "",
      "resources_A:VGPU": "1",
      "resources_B:SRIOV_NET_VF": "1",
      same_subtree: "_A,_B",
      group_policy: "none",
    },
    {},
    { _A: "VGPU=1", _B: "SRIOV_NET_VF=1", "": SIZE, sameSubtree: ["_A,_B"] },
  ],
  [
    "a provider that gives nothing, above others",
    { "trait_N:HW_NUMA_ROOT": "required", "resources_A:VGPU": "1", same_subtree: "_N,_A", group_policy: "none" },
    {},
    { _N: "HW_NUMA_ROOT", _A: "VGPU=1", "": SIZE, sameSubtree: ["_N,_A"] },
  ],
  ["traits of the image", {}, { "trait:CUSTOM_A": "required" }, { "": `${SIZE} CUSTOM_A` }],
  [
    "a TPM",
    { "hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb" },
    { hw_tpm_version: "2.0" },
    { "": SIZE, root: "COMPUTE_SECURITY_TPM_CRB COMPUTE_SECURITY_TPM_2_0" },
  ],
  [
    "encrypted memory",
    {},
    { hw_mem_encryption: "True" },
    { "": `${SIZE} MEM_ENCRYPTION_CONTEXT=1`, root: "HW_CPU_X86_AMD_SEV" },
  ],
  ["secure boot", { "os:secure_boot": "required" }, {}, { "": SIZE, root: "COMPUTE_SECURITY_UEFI_SECURE_BOOT" }],
  ["persistent memory", { "hw:pmem": "4GB,4GB" }, {}, { "": `${SIZE} CUSTOM_PMEM_NAMESPACE_4GB=2` }],
];

describe("the hostRequest of a request", () => {
  it.each(TRANSLATIONS)("%s", (_, extraSpecs, image, hostRequest) => {
    expect(shown(hostRequestOf(asked(extraSpecs, image)))).toEqual(hostRequest);
  });

  it("bandwidth of a port is a group with the port's traits", () => {
    const port = {
      portId: "x",
      suffix: "_PORT0",
      resources: { NET_BW_EGR_KILOBIT_PER_SEC: 1000 },
      requiredTraits: ["CUSTOM_PHYSNET_A"],
      provider: "",
      groupId: "",
    };
    expect(
      shown(hostRequestOf(asked({}, {}, { portRequests: [port, { ...port, portId: "y", suffix: "_PORT1" }] }))),
    ).toEqual({
      _PORT0: "NET_BW_EGR_KILOBIT_PER_SEC=1000 CUSTOM_PHYSNET_A",
      _PORT1: "NET_BW_EGR_KILOBIT_PER_SEC=1000 CUSTOM_PHYSNET_A",
      "": SIZE,
    });
  });
});

const REFUSALS: readonly [Specs, Specs, string][] = [
  [
    { "hw:cpu_policy": "shared" },
    { hw_cpu_policy: "dedicated" },
    "image property hw_cpu_policy=dedicated contradicts the flavor's extra spec hw:cpu_policy=shared",
  ],
  [
    { "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0" },
    { hw_cpu_policy: "dedicated" },
    "image property hw_cpu_policy=dedicated contradicts the flavor's extra spec hw:cpu_policy=mixed",
  ],
  [
    { "hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "isolate" },
    { hw_cpu_thread_policy: "require" },
    "image property hw_cpu_thread_policy=require contradicts the flavor's extra spec hw:cpu_thread_policy=isolate",
  ],
  [{ "hw:cpu_policy": "some" }, {}, "extra spec hw:cpu_policy=some must be dedicated, mixed or shared"],
  [{}, { hw_cpu_policy: "some" }, "image property hw_cpu_policy=some must be dedicated, mixed or shared"],
  [{ "hw:cpu_policy": "mixed" }, {}, "extra spec hw:cpu_dedicated_mask is missing"],
  [{ "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-3" }, {}, "some but not all of the CPUs 0 to 3"],
  [{ "hw:cpu_policy": "dedicated", "hw:cpu_dedicated_mask": "0" }, {}, "left out unless hw:cpu_policy is mixed"],
  [{ "hw:cpu_thread_policy": "require" }, {}, "left out unless the CPU policy is dedicated or mixed"],
  [{ "hw:cpu_policy": "dedicated", "resources:PCPU": "4" }, {}, "extra spec resources:PCPU=4 must be left out"],
  [{ "hw:numa_nodes": "3" }, {}, "a divisor of the flavor's CPUs (4) and memory (4096 MiB)"],
  [{ "hw:numa_nodes": "2" }, { hw_numa_nodes: "2" }, "only one of the two may lay out NUMA nodes"],
  [{ "hw:numa_nodes": "2", "hw:numa_cpus.0": "0-3" }, {}, "numa_cpus.0 and numa_mem.0"],
  [{ "hw:numa_cpus.0": "0-3" }, {}, "left out without hw:numa_nodes"],
  [
    { "hw:mem_page_size": "2MB" },
    { hw_mem_page_size: "1GB" },
    "contradicts the flavor's extra spec hw:mem_page_size=2MB",
  ],
  [{}, { hw_mem_page_size: "large" }, "image property hw_mem_page_size=large must be left out"],
  [
    { "hw:pci_numa_affinity_policy": "socket" },
    { hw_pci_numa_affinity_policy: "legacy" },
    "contradicts the flavor's extra spec hw:pci_numa_affinity_policy=socket",
  ],
  [
    { "trait:CUSTOM_A": "forbidden" },
    { "trait:CUSTOM_A": "required" },
    "image property trait:CUSTOM_A=required contradicts the flavor's extra spec trait:CUSTOM_A=forbidden",
  ],
  [{}, { "trait:CUSTOM_A": "forbidden" }, "image property trait:CUSTOM_A=forbidden must be required"],
  [{ "hw:tpm_version": "1.2" }, { hw_tpm_version: "2.0" }, "contradicts the flavor's extra spec hw:tpm_version=1.2"],
  [
    { "os:secure_boot": "disabled" },
    { os_secure_boot: "required" },
    "contradicts the flavor's extra spec os:secure_boot",
  ],
  [{ same_subtree: "_A,_B" }, {}, "extra spec same_subtree=_A,_B must be suffixes of existing numbered groups"],
];

describe("requests that cannot be translated", () => {
  it.each(REFUSALS)("flavor %o with image %o", (extraSpecs, image, why) => {
    const outcome = translateResources(asked(extraSpecs, image));
    expect(outcome.kind === "host-request" ? "a hostRequest" : describeRequestRefusal(outcome)).toContain(why);
  });
});

describe("any translation", () => {
  const policy = fc.constantFrom("dedicated", "shared", "mixed");
  const specs = fc.record(
    {
      "hw:cpu_policy": policy,
      "hw:cpu_dedicated_mask": fc.constantFrom("0", "^0", "0-1", "9"),
      "hw:numa_nodes": fc.constantFrom("1", "2", "4", "3"),
      "hw:mem_page_size": fc.constantFrom("2MB", "large", "any"),
      "hw:emulator_threads_policy": fc.constantFrom("isolate", "share"),
    },
    { requiredKeys: [] },
  );

  it("requests all CPUs and all memory once, however they are divided, or refuses with the name of the wrong key", () => {
    fc.assert(
      fc.property(specs, fc.record({ hw_cpu_policy: policy }, { requiredKeys: [] }), (extraSpecs, image) => {
        const outcome = translateResources(asked(extraSpecs as Specs, image as Specs));
        if (outcome.kind !== "host-request") {
          expect(describeRequestRefusal(outcome)).toMatch(/hw[:_]/);
          return;
        }
        const sum = (name: string) =>
          outcome.hostRequest.groups.reduce(
            (total, group) => total + (group.resources.get(resourceClass(name)) ?? 0),
            0,
          );
        const emulator = extraSpecs["hw:emulator_threads_policy"] === "isolate" ? 1 : 0;
        expect(sum("VCPU") + sum("PCPU")).toBe(4 + emulator);
        expect(sum("MEMORY_MB")).toBe(4096);
        expect(sum("DISK_GB")).toBe(10);
      }),
      { numRuns: 500 },
    );
  });
});

describe("a volume that several servers may have", () => {
  it("needs a host whose driver can share it", () => {
    const hostRequest = hostRequestOf(asked({}, {}, { sharesVolumes: true }));
    expect(shown(hostRequest)).toEqual({ "": SIZE, root: "COMPUTE_VOLUME_MULTI_ATTACH" });
  });
});
