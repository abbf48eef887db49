import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { generateHosts, readHostsFile, treeOf } from "./host-config.ts";

function fileOf(content: unknown): string {
  const dir = mkdtempSync(join(tmpdir(), "berth-hosts-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const path = join(dir, "hosts.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

describe("the hosts file", () => {
  test("builds the tree of a host and its children, parents first, with Placement's defaults", () => {
    const gpu = { name: "gpu0", inventories: { PGPU: { total: 1 } }, traits: ["CUSTOM_V100"] };
    const [host] = readHostsFile(
      fileOf({ hosts: [{ name: "h1", inventories: { VCPU: { total: 8, allocation_ratio: 2 } }, children: [gpu] }] }),
    );
    const tree = treeOf(host!);
    expect(tree.providers.map((provider) => provider.name)).toEqual(["h1", "h1_gpu0"]);
    expect(tree.providers[1]).toMatchObject({ parent: tree.rootProvider, traits: ["CUSTOM_V100"] });
    expect(tree.providers[0]?.inventories.VCPU).toEqual({
      total: 8,
      reserved: 0,
      minUnit: 1,
      maxUnit: 8,
      stepSize: 1,
      allocationRatio: 2,
    });
    expect(treeOf(host!)).toEqual(tree);
  });

  test("marks a ratio as initial unless the inventory has one that is in force", () => {
    const inventories = {
      VCPU: { total: 8, initial_allocation_ratio: 4 },
      MEMORY_MB: { total: 8, initial_allocation_ratio: 2, allocation_ratio: 1.5 },
      DISK_GB: { total: 8 },
    };
    const [host] = readHostsFile(fileOf({ hosts: [{ name: "h1", inventories }] }));
    const reported = treeOf(host!).providers[0]!.inventories;
    const ratios = Object.values(reported).map((one) => [one.allocationRatio, one.isInitialRatio]);
    expect(ratios).toEqual([
      [4, true],
      [1.5, undefined],
      [1, undefined],
    ]);
  });

  test.each([
    ["{", "JSON"],
    [{ hosts: [] }, "/hosts"],
    [{ hosts: [{ name: "h", inventories: { VCPU: { total: 0 } } }] }, "/hosts/0/inventories/VCPU/total"],
    [{ hosts: [{ name: "h", colour: "red" }] }, "/hosts/0"],
    [{ hosts: [{ name: "h" }, { name: "h" }] }, "twice"],
  ])("is refused with the place of the fault: %j", (content, place) => {
    expect(() => readHostsFile(fileOf(content))).toThrow(place);
  });

  const gold = { CUSTOM_BAREMETAL_GOLD: { total: 1 } };
  test.each([
    ["another class", { VCPU: { total: 1 } }, {}],
    ["more than one unit", { CUSTOM_BAREMETAL_GOLD: { total: 2 } }, {}],
    ["two classes", { ...gold, CUSTOM_BAREMETAL_IRON: { total: 1 } }, {}],
    ["children", gold, { children: [{ name: "gpu0" }] }],
  ])("is refused with a node that offers %s", (_, inventories, more) => {
    const path = fileOf({ hosts: [{ name: "n1", inventories, ...more, bare_metal: {} }] });
    expect(() => readHostsFile(path)).toThrow(
      "host n1 has bare_metal, so its inventories must be one of a class CUSTOM_",
    );
  });

  test("gives the root the traits of the CPU flags that its guests can have", () => {
    const hypervisor = { guest_cpu_flags: ["avx2", "sse4_1", "no-such-flag"] };
    const [host] = readHostsFile(
      fileOf({ hosts: [{ name: "h1", traits: ["HW_CPU_X86_AVX2", "CUSTOM_A"], hypervisor }] }),
    );
    expect(treeOf(host!).providers[0]?.traits).toEqual(["HW_CPU_X86_AVX2", "CUSTOM_A", "HW_CPU_X86_SSE41"]);
    expect(treeOf(host!, ["COMPUTE_NODE", "CUSTOM_A"]).providers.map(({ traits }) => traits)).toEqual([
      ["HW_CPU_X86_AVX2", "CUSTOM_A", "HW_CPU_X86_SSE41", "COMPUTE_NODE"],
      ...treeOf(host!)
        .providers.slice(1)
        .map(({ traits }) => traits),
    ]);
  });

  test("describes bare metal nodes of one agent, and a cluster whose servers fit on its largest member", () => {
    const node = (name: string, reserved: number) => ({ name, inventories: { CUSTOM_GOLD: { total: 1, reserved } } });
    const cluster = { name: "c1", inventories: { VCPU: { total: 192, max_unit: 64 } } };
    const trees = readHostsFile(fileOf({ hosts: [node("n1", 0), node("n2", 1), cluster] })).map((host) => treeOf(host));
    expect(trees.map(({ providers }) => Object.values(providers[0]!.inventories)[0])).toMatchObject([
      { total: 1, reserved: 0, maxUnit: 1 },
      { total: 1, reserved: 1, maxUnit: 1 },
      { total: 192, reserved: 0, maxUnit: 64 },
    ]);
  });

  test("generated hosts have their own names and providers", () => {
    const trees = generateHosts("a1", 3).map((host) => treeOf(host));
    expect(trees.map((tree) => tree.host)).toEqual(["a1-1", "a1-2", "a1-3"]);
    expect(new Set(trees.map((tree) => tree.rootProvider)).size).toBe(3);
  });
});
