import { describe, expect, it } from "vitest";
import { provider } from "../../../test/rigs/view-builders.ts";
import { CandidateSearch } from "../../candidates/best/candidate-search.ts";
import { type ProviderUuid, providerUuid, resourceClass, trait } from "../../ledger/ids.ts";
import { LedgerView } from "../../ledger/ledger-view.ts";
import { searchOf } from "../host-request.ts";
import type { AskedPlace } from "./asked.ts";
import { asked, hostRequestOf, type Specs } from "./some-request.ts";

/** Adds a host that is flat, or that has its CPUs and memory in NUMA nodes, each with a GPU below it. */
function hostOf(view: LedgerView, name: string, nodes: number, traits: readonly string[] = []): void {
  const root = providerUuid(name);
  const put = (uuid: ProviderUuid, parent: ProviderUuid | null) =>
    view.apply({ kind: "provider-put", uuid, name: uuid, parent, root, generation: 0 });
  const give = (provider: ProviderUuid, inventories: Readonly<Record<string, number>>) => {
    for (const [className, total] of Object.entries(inventories)) {
      const inventory = { total, reserved: 0, minUnit: 1, maxUnit: total, stepSize: 1, allocationRatio: 1 };
      view.apply({ kind: "inventory-put", provider, resourceClass: resourceClass(className), inventory, used: 0 });
    }
  };
  put(root, null);
  give(root, { DISK_GB: 100 });
  for (let index = 0; index < nodes; index += 1) {
    const node = providerUuid(`${name}-numa${index}`);
    const gpu = providerUuid(`${name}-gpu${index}`);
    put(node, root);
    give(node, { VCPU: 4, PCPU: 4, MEMORY_MB: 8192, CUSTOM_MEMORY_PAGES_2048KB: 4096 });
    view.apply({ kind: "trait-added", provider: node, trait: trait("HW_NUMA_ROOT") });
    put(gpu, node);
    give(gpu, { VGPU: index === 0 ? 1 : 2 });
  }
  if (nodes === 0) give(root, { VCPU: 8, PCPU: 8, MEMORY_MB: 16384, CUSTOM_MEMORY_PAGES_2048KB: 8192, VGPU: 3 });
  for (const one of traits) view.apply({ kind: "trait-added", provider: root, trait: trait(one) });
  view.apply({ kind: "host-put", host: name, provider: root, up: true, disabled: false });
}

describe("requests to NUMA hosts and flat hosts", () => {
  const view = new LedgerView();
  hostOf(view, "flat", 0);
  hostOf(view, "numa", 2);
  hostOf(view, "off", 0, ["COMPUTE_STATUS_DISABLED"]);
  const found = (extraSpecs: Specs, more: Partial<AskedPlace> = {}) =>
    [...new CandidateSearch(view, { ...searchOf(hostRequestOf(asked(extraSpecs, {}, more))), limit: 1000 })].map(
      (candidate) => ({
        host: candidate.host,
        nodes: [0, 1].flatMap((index) => candidate.mappings.get(`_NUMA${index}`)?.join() ?? []),
        gpu: candidate.mappings.get("_GPU")?.join(),
      }),
    );

  it("puts each guest node on a different NUMA node, all of them on the root of a flat host, and none on a disabled host", () => {
    const ways = found({ "hw:numa_nodes": "2" });
    expect(ways.filter(({ host }) => host === "flat")).toEqual([
      { host: "flat", nodes: ["flat", "flat"], gpu: undefined },
    ]);
    const onNuma = ways.filter(({ host }) => host === "numa").map(({ nodes }) => [...nodes].sort().join(" "));
    expect(new Set(onNuma)).toEqual(new Set(["numa-numa0 numa-numa1"]));
    expect(ways.some(({ host }) => host === "off")).toBe(false);
  });

  it("keeps a device in the subtree of the guest's node", () => {
    const ways = found({ "hw:numa_nodes": "1", "resources_GPU:VGPU": "2", "hw:pci_numa_affinity_policy": "required" });
    expect(ways.filter(({ host }) => host === "numa")).toEqual([
      { host: "numa", nodes: ["numa-numa1"], gpu: "numa-gpu1" },
    ]);
    expect(ways.map(({ host }) => host)).toContain("flat");
  });

  it("takes the displays of a VGPU from the VGPU's card, and a trait from any of the host's providers", () => {
    const gpus = new LedgerView();
    hostOf(gpus, "h", 0);
    const cards = [
      ["busy", { VGPU_DISPLAY_HEAD: 4 }, ["CUSTOM_BIG"]],
      ["free", { VGPU: 1, VGPU_DISPLAY_HEAD: 2 }, []],
      ["big", { VGPU: 1, VGPU_DISPLAY_HEAD: 2 }, ["CUSTOM_BIG"]],
    ] as const;
    for (const [name, inventories, traits] of cards)
      gpus.applyAll(provider(name, inventories, { parent: "h", traits }));
    const servedBy = (extraSpecs: Specs) =>
      [...new CandidateSearch(gpus, { ...searchOf(hostRequestOf(asked(extraSpecs))), limit: 1000 })].map(({ items }) =>
        items.filter(({ resourceClass }) => resourceClass.startsWith("VGPU")).map((item) => item.provider),
      );
    const vgpu = { "resources:VGPU": "1", "resources:VGPU_DISPLAY_HEAD": "2" };
    expect(servedBy(vgpu).sort()).toEqual([
      ["big", "big"],
      ["free", "free"],
    ]);
    expect(servedBy({ "trait:CUSTOM_BIG": "required", ...vgpu })).toEqual([["big", "big"]]);
    expect(servedBy({ "resources:VGPU_DISPLAY_HEAD": "2", "resources:VGPU": "1" }).sort()).toEqual([
      ["big", "big"],
      ["free", "free"],
    ]);
    expect(servedBy({ ...vgpu, "resources:VGPU_DISPLAY_HEAD": "3" })).toEqual([]);
    expect(servedBy({ "resources:VGPU_DISPLAY_HEAD": "3" })).toEqual([["busy"]]);
  });

  it("admits only the named host", () => {
    expect(found({}, { requestedHost: "flat" }).map(({ host }) => host)).toEqual(["flat"]);
    expect(found({}, { requestedHost: "unknown" })).toEqual([]);
  });
});
