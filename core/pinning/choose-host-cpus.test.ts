import { describe, expect, test } from "vitest";
import { chooseHostCpus, type PinningHost } from "./choose-host-cpus.ts";
import type { GuestNeeds } from "./guest-needs.ts";
import { type GuestPinning, isUnpinned } from "./guest-pinning.ts";
import type { MachineLayout } from "./machine-layout.ts";

/** Two NUMA nodes of four cores with two threads each; thread n + 8 belongs to the core of CPU n. CPUs 0 and 4 and their siblings are shared. */
const TWO_NODES: MachineLayout = {
  places: [
    { provider: "n0", node: 0, dedicated: [1, 2, 3, 9, 10, 11], shared: [0, 8], pagesKib: [2_048] },
    { provider: "n1", node: 1, dedicated: [5, 6, 7, 13, 14, 15], shared: [4, 12], pagesKib: [2_048, 1_048_576] },
  ],
  cores: Array.from({ length: 8 }, (_, core) => [core, core + 8]),
};

const host = (taken: readonly number[] = [], own: readonly number[] = []): PinningHost => ({
  layout: TWO_NODES,
  taken: new Set(taken),
  own: new Set(own),
});

function needs(vcpus: readonly string[], changes: Partial<GuestNeeds> = {}): GuestNeeds {
  return {
    kind: "needs",
    vcpus: vcpus.map((provider) => ({ provider: provider.replace("~", ""), isDedicated: !provider.startsWith("~") })),
    requiresThreads: false,
    extra: { provider: null, count: 0 },
    sharesEmulator: false,
    memory: [{ memoryMib: 2_048, provider: "n0" }],
    bindsMemory: true,
    pages: null,
    ...changes,
  };
}

function pinningOf(wanted: GuestNeeds, on: PinningHost = host()): GuestPinning {
  const chosen = chooseHostCpus(wanted, on);
  if (chosen.kind === "refused") throw new Error(chosen.reason);
  return chosen.pinning;
}

describe("dedicated CPUs", () => {
  test("fill the threads of a core before the next core", () => {
    expect(pinningOf(needs(["n0", "n0", "n0", "n0"])).vcpus).toEqual([[1], [9], [2], [10]]);
  });

  test("complete a core that is in use before they break a whole one", () => {
    expect(pinningOf(needs(["n0"]), host([2])).vcpus).toEqual([[10]]);
    expect(pinningOf(needs(["n0", "n0"]), host([2])).vcpus).toEqual([[1], [9]]);
  });

  test("come from cores with several free threads, when the guest requires that", () => {
    const wanted = needs(["n0", "n0", "n0"], { requiresThreads: true });
    expect(pinningOf(wanted, host([2])).held).toEqual([1, 3, 9]);
    expect(chooseHostCpus(wanted, host([2, 11]))).toEqual({
      kind: "refused",
      reason:
        "the guest needs 3 dedicated CPUs of NUMA node 0, which has 1-3,9-11, of which 1,9 are free together with another thread of their core",
    });
    expect(pinningOf(needs(["n0", "n0", "n0"]), host([2, 11])).held).toEqual([1, 3, 9]);
  });

  test("come from the provider of each vCPU, with the memory of that node", () => {
    const memory = ["n1", "n0"].map((provider) => ({ memoryMib: 1_024, provider }));
    expect(pinningOf(needs(["n1", "n1", "n0", "n0"], { memory }))).toEqual({
      vcpus: [[5], [13], [1], [9]],
      held: [1, 5, 9, 13],
      emulator: [1, 5, 9, 13],
      memory: [
        { memoryMib: 1_024, hostNode: 1 },
        { memoryMib: 1_024, hostNode: 0 },
      ],
      isBound: true,
      pageKib: null,
    });
  });

  test("are first those of the server's other guest, so that a resize on the host needs only the difference", () => {
    expect(pinningOf(needs(["n0", "n0", "n0"]), host([], [3, 10])).held).toEqual([2, 3, 10]);
    expect(pinningOf(needs(["n0"]), host([1, 2, 9, 11], [3, 10])).held).toEqual([3]);
  });

  test("are refused with the reason when the node has too few that are free", () => {
    const words = "the guest needs 3 dedicated CPUs of NUMA node 0, which has 1-3,9-11, of which 2,10 are free";
    expect(chooseHostCpus(needs(["n0", "n0", "n0"]), host([1, 3, 9, 11]))).toEqual({ kind: "refused", reason: words });
    expect(chooseHostCpus(needs(["n0"]), host([1, 2, 3, 9, 10, 11]))).toMatchObject({
      reason: expect.stringContaining("of which none is free"),
    });
  });

  test("are refused by a host that does not know which CPUs its providers stand for", () => {
    for (const wanted of [needs(["elsewhere"]), needs(["n0"])]) {
      const layout = wanted.vcpus[0]?.provider === "n0" ? null : TWO_NODES;
      expect(chooseHostCpus(wanted, { ...host(), layout })).toMatchObject({
        kind: "refused",
        reason: expect.stringContaining("--cpu-dedicated-set"),
      });
    }
  });
});

describe("the emulator's threads", () => {
  test("stay on the guest's own CPUs, those that float included", () => {
    expect(pinningOf(needs(["n0", "~n0"])).emulator).toEqual([0, 1, 8]);
  });

  test("have a dedicated CPU of their own when the guest isolates them", () => {
    const pinning = pinningOf(needs(["n0", "n0"], { extra: { provider: "n0", count: 1 } }));
    expect([pinning.vcpus, pinning.emulator, pinning.held]).toEqual([[[1], [9]], [2], [1, 2, 9]]);
  });

  test("float over the host's shared CPUs when the guest shares them", () => {
    expect(pinningOf(needs(["n0"], { sharesEmulator: true })).emulator).toEqual([0, 4, 8, 12]);
  });
});

describe("guests without dedicated CPUs", () => {
  test("float over the shared CPUs of their provider, and take memory where they find it", () => {
    const pinning = pinningOf(needs(["~n1", "~n1"], { bindsMemory: false }), host([5]));
    expect(pinning).toMatchObject({
      vcpus: [
        [4, 12],
        [4, 12],
      ],
      held: [],
      emulator: [4, 12],
    });
    expect([pinning.memory, pinning.isBound]).toEqual([[{ memoryMib: 2_048, hostNode: 0 }], false]);
  });

  test("are refused by a node without shared CPUs, since otherwise they would run on all CPUs of the host", () => {
    const layout = { places: [{ ...TWO_NODES.places[0]!, shared: [] }], cores: [] };
    expect(chooseHostCpus(needs(["~n0"]), { ...host(), layout })).toEqual({
      kind: "refused",
      reason: "the guest needs shared CPUs of NUMA node 0, which has none",
    });
  });

  test("whose memory is to be bound are not bound on a host with one node, where there is nothing to choose", () => {
    const layout = { places: [TWO_NODES.places[0]!], cores: [] };
    expect(pinningOf(needs(["~n0"]), { ...host(), layout })).toMatchObject({
      isBound: false,
      memory: [{ hostNode: 0 }],
    });
  });

  test("are left to the kernel on a host that has no sets of CPUs, or whose providers are unknown", () => {
    const place = { provider: "n0", node: 0, dedicated: [], shared: null, pagesKib: [] };
    for (const layout of [null, { places: [place], cores: [] }])
      expect(isUnpinned(pinningOf(needs(["~n0"]), { ...host(), layout }))).toBe(true);
  });
});

describe("huge pages", () => {
  test("of a size that the host chooses are the largest that divide the memory and that every node has", () => {
    const large = (memory: GuestNeeds["memory"]) => chooseHostCpus(needs(["~n0"], { pages: "large", memory }), host());
    expect(large([{ memoryMib: 2_048, provider: "n1" }])).toMatchObject({ pinning: { pageKib: 1_048_576 } });
    expect(large([{ memoryMib: 1_536, provider: "n1" }])).toMatchObject({ pinning: { pageKib: 2_048 } });
    const both = ["n0", "n1"].map((provider) => ({ memoryMib: 1_024, provider }));
    expect(large(both)).toMatchObject({ pinning: { pageKib: 2_048 } });
    expect(large([{ memoryMib: 1_025, provider: "n1" }])).toMatchObject({ kind: "refused" });
    expect(large([{ memoryMib: 2_048, provider: null }])).toMatchObject({ kind: "refused" });
  });
});
