import { describe, expect, it } from "vitest";
import type { Flavor } from "../../proto/gen/berth/shared.ts";
import { aggregate, sceneOf } from "../../test/rigs/facts-builders.ts";
import { gpuHost, host, provider, viewOf } from "../../test/rigs/view-builders.ts";
import type { LedgerView } from "../ledger/ledger-view.ts";
import { type ChoiceOptions, HostChooser } from "./host-chooser.ts";
import type { CellHosts } from "./ranking/cell-ranking.ts";
import { translateFlavor } from "./request/translate-request.ts";
import { buildFailures } from "./weighers/build-failures.ts";
import { freeCpu } from "./weighers/free-cpu.ts";
import { freeMemory } from "./weighers/free-memory.ts";
import { gpuBestFit } from "./weighers/gpu-best-fit.ts";
import { OwnSlice } from "./weighers/own-slice.ts";
import type { Weigher } from "./weighers/weigher.ts";

const chooser = new HostChooser();
const cell = (name: string, view: LedgerView): CellHosts => ({ name, view });
const by = (...weighers: readonly Weigher[]) => weighers.map((weigher) => ({ weigher, multiplier: 1 }));

const FLAVOR: Flavor = {
  id: "f",
  name: "f",
  vcpus: 1,
  memoryMib: 1,
  diskGib: 0,
  ephemeralGib: 0,
  swapMib: 0,
  extraSpecs: {},
};

function choose(cells: readonly CellHosts[], extraSpecs: Record<string, string>, options: Partial<ChoiceOptions> = {}) {
  const flavor: Flavor = { ...FLAVOR, extraSpecs };
  const outcome = translateFlavor(flavor);
  if (outcome.kind !== "host-request") throw new Error(`bad flavor: ${outcome.kind}`);
  return chooser.choose(outcome.hostRequest, cells, {
    seed: 1,
    alternates: 2,
    weighers: [],
    spread: 1,
    spreadTolerance: 0,
    ...options,
  });
}
function hostsChosen(...args: Parameters<typeof choose>): string[] {
  const choice = choose(...args);
  return choice.kind === "chosen" ? choice.selections.map((selection) => selection.host) : [];
}
const flat = (name: string, used: number) => [
  ...provider(name, { VCPU: 16, MEMORY_MB: 100 }, { used }),
  host(name, name),
];
const gpus = (name: string, count: number, used = 0) => [...gpuHost(name, count, { used }), host(name, name)];

describe("HostChooser", () => {
  it("takes the best host, then alternates of its cell only, best first", () => {
    const one = cell("one", viewOf(flat("a", 8), flat("b", 2), flat("c", 5)));
    const two = cell("two", viewOf(flat("x", 0), flat("y", 12)));
    expect(hostsChosen([one, two], {}, { weighers: by(freeCpu) })).toEqual(["x", "y"]);
    expect(hostsChosen([one], {}, { weighers: by(freeCpu) })).toEqual(["b", "c", "a"]);
    expect(hostsChosen([one], {}, { weighers: by(freeCpu), alternates: 1 })).toEqual(["b", "c"]);
    expect(hostsChosen([one], {}, { weighers: [{ weigher: freeCpu, multiplier: -1 }] })).toEqual(["a", "c", "b"]);
  });

  it("chooses the same host for the same seed, and spreads over about equal hosts for different seeds", () => {
    const cells = [
      cell("one", viewOf(...Array.from({ length: 20 }, (_, index) => flat(`h${index}`, 0)), flat("worse", 10))),
    ];
    const options = (seed: number) => ({
      seed,
      weighers: by(freeCpu),
      spread: 5,
      spreadTolerance: 0.05,
      alternates: 0,
    });
    expect(hostsChosen(cells, {}, options(7))).toEqual(hostsChosen(cells, {}, options(7)));
    const chosen = new Set(
      Array.from({ length: 100 }, (_, seed) => hostsChosen(cells, {}, options(seed * 2654435761))[0]),
    );
    expect(chosen.size).toBeGreaterThan(10);
    expect(chosen).not.toContain("worse");
  });

  it("spreads the alternates of a burst, so that its requests do not share two of them, and gives each request its best first", () => {
    const hosts = Array.from({ length: 200 }, (_, index) => flat(`h${index}`, index % 8));
    const cells = [cell("one", viewOf(...hosts))];
    const used = (name: string) => Number(name.slice(1)) % 8;
    const alternates = Array.from({ length: 100 }, (_, seed) =>
      hostsChosen(cells, {}, { seed: seed * 2654435761, weighers: by(freeCpu) }).slice(1),
    );
    for (const pair of alternates) {
      expect(pair).toHaveLength(2);
      expect(used(pair[0]!)).toBeLessThanOrEqual(used(pair[1]!));
    }
    const shared = Map.groupBy(alternates.flat(), (name) => name);
    expect(shared.size).toBeGreaterThan(40);
  });

  it("takes alternates from other failure domains than the chosen host's, as aggregates name them", () => {
    const names = ["a1", "a2", "a3", "b1", "b2", "c1"];
    const racks = ["a", "b", "c"].map((rack, index) =>
      aggregate(
        index + 1,
        { failure_domain: `rack-${rack}` },
        names.filter((name) => name.startsWith(rack)),
      ),
    );
    const scene = sceneOf(Object.fromEntries(names.map((name) => [name, {}])), racks);
    for (let seed = 0; seed < 20; seed += 1) {
      const chosen = hostsChosen([scene], {}, { seed, spread: 6, spreadTolerance: 1 });
      expect(new Set(chosen.map((name) => name[0])), `seed ${seed}: ${chosen.join(", ")}`).toEqual(new Set("abc"));
    }
  });

  it("gives the same alternates to a server whose host is already chosen as it gives when it chooses the host", () => {
    const cells = [cell("one", viewOf(flat("a", 8), flat("b", 2), flat("c", 5), flat("d", 0)))];
    const outcome = translateFlavor(FLAVOR);
    if (outcome.kind !== "host-request") throw new Error("bad flavor");
    const options = { seed: 1, alternates: 2, weighers: by(freeCpu), spread: 1, spreadTolerance: 0 };
    const hostsOf = (excluded: string[]) =>
      chooser
        .alternatesOf({ cell: "one", host: "d" }, outcome.hostRequest, cells, {
          ...options,
          excludedHosts: new Map([["one", new Set(excluded)]]),
        })
        .map((selection) => selection.host);
    expect(hostsOf([])).toEqual(["b", "c"]);
    expect(hostsOf(["b", "d"])).toEqual(["c", "a"]);
    expect(chooser.alternatesOf({ cell: "two", host: "d" }, outcome.hostRequest, cells, options)).toEqual([]);
  });

  it("names the resources of each provider and the group that it serves", () => {
    const choice = choose([cell("one", viewOf(gpus("a", 2)))], {
      "resources1:CUSTOM_GPU_MILLI": "1000",
      "resources2:CUSTOM_GPU_MILLI": "1000",
      group_policy: "isolate",
    });
    const [selection] = choice.kind === "chosen" ? choice.selections : [];
    expect(selection).toMatchObject({ host: "a", rootProvider: "a" });
    expect(selection?.allocation?.mappings).toEqual({ "": "a", "1": "a-gpu0", "2": "a-gpu1" });
    expect(selection?.allocation?.items).toContainEqual({
      provider: "a-gpu1",
      resourceClass: "CUSTOM_GPU_MILLI",
      amount: 1000,
    });
  });

  it("skips a host on which the groups do not fit together, as chosen host and as alternate", () => {
    const traps = ["t1", "t2", "t3"].map((name) => [
      ...provider(name, { VCPU: 16, MEMORY_MB: 100 }),
      ...provider(`${name}-x`, { VGPU: 1 }, { parent: name, traits: ["X", "Y"] }),
      ...provider(`${name}-n`, { VGPU: 1 }, { parent: name }),
      host(name, name),
    ]);
    const good = [
      ...provider("good", { VCPU: 2, MEMORY_MB: 100 }),
      ...provider("good-x", { VGPU: 1 }, { parent: "good", traits: ["X"] }),
      ...provider("good-y", { VGPU: 1 }, { parent: "good", traits: ["Y"] }),
      host("good", "good"),
    ];
    const specs = {
      "resources1:VGPU": "1",
      "trait1:X": "required",
      "resources2:VGPU": "1",
      "trait2:Y": "required",
      group_policy: "none",
    };
    expect(
      hostsChosen([cell("one", viewOf(...traps, good))], specs, {
        weighers: by(freeCpu),
        spread: 2,
        spreadTolerance: 1,
      }),
    ).toEqual(["good"]);
    expect(choose([cell("one", viewOf(...traps))], specs)).toMatchObject({
      kind: "none",
      trees: 3,
      refusals: [{ refusal: { kind: "no-combination" }, trees: 3 }],
    });
  });

  it("counts over all cells why no host fits", () => {
    const down = host("down", "down", { up: false });
    const one = cell("one", viewOf(flat("a", 16), provider("down", { VCPU: 16 }), down));
    const two = cell("two", viewOf(flat("b", 16)));
    expect(choose([one, two], {})).toMatchObject({
      kind: "none",
      trees: 3,
      refusals: [
        { trees: 2, refusal: { kind: "lacks", resourceClass: "VCPU" } },
        { trees: 1, refusal: { kind: "host-down" } },
      ],
    });
  });

  it("leaves out hosts that were tried, and room that is claimed but not yet visible", () => {
    const one = cell("one", viewOf(flat("a", 0), flat("b", 15)));
    expect(hostsChosen([one], {}, { excludedHosts: new Map([["one", new Set(["a"])]]) })).toEqual(["b"]);
    one.view.reserve("claim", [{ provider: "b" as never, resourceClass: "VCPU" as never, amount: 1 }]);
    expect(hostsChosen([one], {})).toEqual(["a"]);
  });

  it("looks beyond the first ranked hosts when none of them fits", () => {
    const traps = Array.from({ length: 60 }, (_, index) => [
      ...provider(`t${index}`, { VCPU: 16, MEMORY_MB: 1 }),
      ...provider(`t${index}-x`, { VGPU: 1 }, { parent: `t${index}`, traits: ["X", "Y"] }),
      ...provider(`t${index}-n`, { VGPU: 1 }, { parent: `t${index}` }),
      host(`t${index}`, `t${index}`),
    ]);
    const good = [
      ...provider("good", { VCPU: 1, MEMORY_MB: 1 }),
      ...provider("good-x", { VGPU: 2 }, { parent: "good", traits: ["X", "Y"] }),
      host("good", "good"),
    ];
    const specs = {
      "resources1:VGPU": "1",
      "trait1:X": "required",
      "resources2:VGPU": "1",
      "trait2:Y": "required",
      group_policy: "none",
    };
    expect(hostsChosen([cell("one", viewOf(...traps, good))], specs, { weighers: by(freeCpu) })).toEqual(["good"]);
  });
});

describe("weighers", () => {
  it("free-memory prefers the host with more free memory", () => {
    const view = viewOf(
      [...provider("a", { VCPU: 9, MEMORY_MB: 50 }), host("a", "a")],
      [...provider("b", { VCPU: 9, MEMORY_MB: 90 }), host("b", "b")],
    );
    expect(hostsChosen([cell("one", view)], {}, { weighers: by(freeMemory) })).toEqual(["b", "a"]);
  });

  it("free-cpu adds up a host's NUMA nodes when its root offers no CPU", () => {
    const numa = (name: string, used: number) => [
      ...provider(name, { MEMORY_MB: 10 }),
      ...provider(`${name}-0`, { VCPU: 8 }, { parent: name, used }),
      ...provider(`${name}-1`, { VCPU: 8 }, { parent: name, used }),
      host(name, name),
    ];
    expect(hostsChosen([cell("one", viewOf(numa("a", 4), numa("b", 1)))], {}, { weighers: by(freeCpu) })).toEqual([
      "b",
      "a",
    ]);
  });

  it("gpu-best-fit puts a share where the child is left with the least", () => {
    const share = { "resources1:CUSTOM_GPU_MILLI": "300" };
    const cells = [cell("one", viewOf(gpus("whole", 1), gpus("half", 1, 500), gpus("tight", 8, 700)))];
    expect(hostsChosen(cells, share, { weighers: by(gpuBestFit) })).toEqual(["tight", "half", "whole"]);
  });

  it("gpu-best-fit puts whole GPUs where the fewest are left", () => {
    const two = {
      "resources1:CUSTOM_GPU_MILLI": "1000",
      "resources2:CUSTOM_GPU_MILLI": "1000",
      group_policy: "isolate",
    };
    const cells = [cell("one", viewOf(gpus("eight", 8), gpus("two", 2), gpus("four", 4)))];
    expect(hostsChosen(cells, two, { weighers: by(gpuBestFit) })).toEqual(["two", "four", "eight"]);
  });

  it("gpu-best-fit keeps servers without GPUs off GPU hosts while others fit", () => {
    const cells = [cell("one", viewOf(gpus("free", 2), gpus("used", 2, 1000), flat("plain", 15)))];
    const weighers = [...by(freeCpu, freeMemory), { weigher: gpuBestFit, multiplier: 5 }];
    expect(hostsChosen(cells, {}, { weighers })).toEqual(["plain", "used", "free"]);
  });

  it("build-failures prefers hosts that did not fail", () => {
    const cells = [cell("one", viewOf(flat("a", 0), flat("b", 0), flat("c", 0)))];
    const counts = new Map([
      ["a", 4],
      ["b", 1],
      ["long-gone", 9],
    ]);
    let current = counts;
    const weigher = buildFailures((name) => (name === "one" ? current : undefined));
    const weighers = by(weigher);
    expect(hostsChosen(cells, {}, { weighers })).toEqual(["c", "b", "a"]);
    current = new Map([["c", 1]]).set("b", 2);
    cells[0]!.view.touchAll();
    expect(hostsChosen(cells, {}, { weighers })).toEqual(["a", "c", "b"]);
    // The host with the fewest failures now has another root.
    cells[0]!.view.applyAll([...flat("other", 0), host("c", "other")]);
    expect(hostsChosen(cells, {}, { weighers })).toEqual(["a", "c", "b"]);
  });

  it("own-slice gives each of several schedulers hosts of its own, and another's when it has none", () => {
    const names = Array.from({ length: 40 }, (_, index) => `h${index}`);
    const cells = [cell("one", viewOf(...names.map((name) => flat(name, 0))))];
    const schedulers = ["s1", "s2", "s3"];
    const hostsOf = (id: string) => {
      const slice = new OwnSlice(id);
      slice.setMembers(schedulers);
      return hostsChosen(cells, {}, { weighers: by(slice), alternates: 3 });
    };
    const slices = schedulers.map((id) => hostsOf(id));
    expect(new Set(slices.flat()).size).toBe(12);
    const mine = slices[0]!;
    const others = new Map([["one", new Set(names.filter((name) => !slices[1]!.includes(name)))]]);
    const slice = new OwnSlice("s1");
    slice.setMembers(schedulers);
    expect(mine).not.toContain(hostsChosen(cells, {}, { weighers: by(slice), excludedHosts: others })[0]);
  });
});
