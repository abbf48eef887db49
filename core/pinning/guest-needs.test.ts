import { expect, test } from "vitest";
import type { AllocationRequest } from "../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { guestNeedsOf } from "./guest-needs.ts";

const server = (extraSpecs: Record<string, string>, vcpus = 4) =>
  serverSpec(1, {
    flavor: {
      ...{ id: "f", name: "f", vcpus, memoryMib: 4_096, diskGib: 1, ephemeralGib: 0, swapMib: 0 },
      extraSpecs,
    },
  });

/** A claim in the form `provider CLASS amount`, with the providers of groups. */
function claim(lines: readonly string[], mappings: Record<string, string> = {}): AllocationRequest {
  const items = lines.map((line) => {
    const [provider = "", resourceClass = "", amount] = line.split(" ");
    return { provider, resourceClass, amount: Number(amount) };
  });
  return { items, mappings };
}

test("a guest without a CPU policy floats over the CPUs of the provider that gives its VCPU", () => {
  expect(guestNeedsOf(server({}, 2), claim(["n0 VCPU 2", "n1 MEMORY_MB 4096"]))).toEqual({
    kind: "needs",
    vcpus: [
      { provider: "n0", isDedicated: false },
      { provider: "n0", isDedicated: false },
    ],
    requiresThreads: false,
    extra: { provider: null, count: 0 },
    sharesEmulator: false,
    memory: [{ memoryMib: 4_096, provider: "n1" }],
    bindsMemory: false,
    pages: null,
  });
});

test("each NUMA node of a guest is served by the provider of its group, and the emulator's CPU by that of the first node", () => {
  const specs = { "hw:cpu_policy": "dedicated", "hw:numa_nodes": "2", "hw:emulator_threads_policy": "isolate" };
  const given = claim(["b PCPU 3", "a PCPU 2", "b MEMORY_MB 2048", "a MEMORY_MB 2048"], { _NUMA0: "b", _NUMA1: "a" });
  const needs = guestNeedsOf(server(specs), given);
  expect(needs).toMatchObject({
    vcpus: ["b", "b", "a", "a"].map((provider) => ({ provider, isDedicated: true })),
    extra: { provider: "b", count: 1 },
    memory: [
      { memoryMib: 2_048, provider: "b" },
      { memoryMib: 2_048, provider: "a" },
    ],
    bindsMemory: true,
  });
});

test("a mixed guest has dedicated CPUs for the CPUs of its mask alone", () => {
  const specs = { "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "1,3" };
  const needs = guestNeedsOf(server(specs), claim(["r PCPU 2", "r VCPU 2"]));
  expect(needs.kind === "needs" && needs.vcpus.map(({ isDedicated }) => isDedicated)).toEqual([
    false,
    true,
    false,
    true,
  ]);
});

test("a flavor that names PCPU itself has as many dedicated CPUs as were claimed, and more than its CPUs are the emulator's", () => {
  const dedicated = (lines: readonly string[]) => {
    const needs = guestNeedsOf(server({ "resources:PCPU": "x" }), claim(lines));
    return needs.kind === "needs" ? [needs.vcpus.filter((one) => one.isDedicated).length, needs.extra.count] : needs;
  };
  expect(dedicated(["r PCPU 4"])).toEqual([4, 0]);
  expect(dedicated(["r PCPU 3", "r VCPU 1"])).toEqual([3, 0]);
  expect(dedicated(["r PCPU 5"])).toEqual([4, 1]);
});

test.each([
  [{ "hw:cpu_thread_policy": "require" }, {}, true],
  [{ "hw:cpu_thread_policy": "prefer" }, { hw_cpu_thread_policy: "require" }, true],
  [{}, { hw_cpu_thread_policy: "require" }, true],
  [{ "hw:cpu_thread_policy": "isolate" }, {}, false],
  [{}, {}, false],
])("threads of whole cores are required by %j and %j: %s", (specs, imageProperties, requiresThreads) => {
  const { flavor } = server({ "hw:cpu_policy": "dedicated", ...specs });
  const spec = serverSpec(1, {
    ...(flavor && { flavor }),
    imageProperties: { ...imageProperties } as Record<string, string>,
  });
  expect(guestNeedsOf(spec, claim(["r PCPU 4"]))).toMatchObject({ requiresThreads });
});

test("a claim that gives fewer dedicated CPUs than the flavor's policy needs is refused", () => {
  const specs = { "hw:cpu_policy": "dedicated" };
  for (const given of [claim(["r VCPU 4"]), claim(["r PCPU 3"]), undefined])
    expect(guestNeedsOf(server(specs), given)).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("the guest needs 4 dedicated CPUs, and its claim has"),
    });
});

test.each([
  ["2048", 2_048, "n1"],
  ["1GB", 1_048_576, null],
  ["large", "large", "n0"],
  ["any", null, "n0"],
  ["small", null, "n0"],
])("hw:mem_page_size=%s is %j pages of the provider that gives them", (value, pages, provider) => {
  const given = claim(["n0 MEMORY_MB 4096", "n0 VCPU 4", "n1 CUSTOM_MEMORY_PAGES_2048KB 2048"]);
  expect(guestNeedsOf(server({ "hw:mem_page_size": value }), given)).toMatchObject({
    pages,
    memory: [{ memoryMib: 4_096, provider }],
    bindsMemory: pages !== null,
  });
});
