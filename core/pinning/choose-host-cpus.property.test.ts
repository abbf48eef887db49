import { expect, test } from "vitest";
import fc from "../../test/rigs/property.ts";
import { chooseHostCpus } from "./choose-host-cpus.ts";
import type { GuestNeeds } from "./guest-needs.ts";
import type { MachineLayout, ProviderPlace } from "./machine-layout.ts";

const PROVIDERS = ["n0", "n1"] as const;

/** A machine of two NUMA nodes, whose CPUs are dedicated, shared, or neither. */
const layouts: fc.Arbitrary<MachineLayout> = fc
  .record({
    uses: fc.array(fc.constantFrom("dedicated", "shared", "none"), { minLength: 2, maxLength: 24 }),
    threads: fc.integer({ min: 1, max: 4 }),
  })
  .map(({ uses, threads }) => {
    const cpusOf = (node: number, use: string) =>
      uses.flatMap((one, cpu) => (cpu % 2 === node && one === use ? [cpu] : []));
    const places = PROVIDERS.map((provider, node): ProviderPlace => {
      const [dedicated, shared] = [cpusOf(node, "dedicated"), cpusOf(node, "shared")];
      return { provider, node, dedicated, shared, pagesKib: [] };
    });
    // Threads of a core are of one node.
    const coreOf = (cpu: number) => `${cpu % 2} ${Math.floor(cpu / 2 / threads)}`;
    const cores = [...Map.groupBy(uses.keys(), coreOf).values()].filter((core) => core.length > 1);
    return { places, cores };
  });

/** An arrival takes dedicated CPUs of both nodes. A server that is there already is resized on its host. Else the server leaves. */
const steps = fc.array(
  fc.record({
    server: fc.integer({ min: 0, max: 4 }),
    counts: fc.option(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 5 })), { nil: undefined }),
    isKept: fc.boolean(),
  }),
  { maxLength: 30 },
);

function needsOf(counts: readonly [number, number]): GuestNeeds {
  const vcpus = PROVIDERS.flatMap((provider, node) =>
    Array.from({ length: counts[node] ?? 0 }, () => ({ provider, isDedicated: true })),
  );
  return {
    ...{ kind: "needs", vcpus, requiresThreads: false, extra: { provider: null, count: 0 }, sharesEmulator: false },
    ...{ memory: [{ memoryMib: 1_024, provider: "n0" }], bindsMemory: true, pages: null },
  };
}

/** The CPUs of each guest of a server: at most its guest before a resize and the one after. */
type Guests = Map<number, readonly (readonly number[])[]>;

/** How many CPUs of a provider the ledger counts for a server: during a resize on one host, the larger amount. */
function claimed(guests: readonly (readonly number[])[], place: ProviderPlace): number {
  return Math.max(0, ...guests.map((cpus) => cpus.filter((cpu) => place.dedicated.includes(cpu)).length));
}

test("whatever comes, goes and is resized: no two servers have a CPU in common, and what the ledger grants is never refused", () => {
  fc.assert(
    fc.property(layouts, steps, (layout, all) => {
      const guests: Guests = new Map();
      for (const { server, counts, isKept } of all) {
        const before = guests.get(server) ?? [];
        if (counts === undefined) {
          guests.delete(server);
          continue;
        }
        const last = before.slice(-1);
        const others = [...guests].filter(([one]) => one !== server).map(([, held]) => held);
        const isGranted = layout.places.every((place, node) => {
          const used = others.reduce((sum, held) => sum + claimed(held, place), 0);
          return used + Math.max(claimed(last, place), counts[node] ?? 0) <= place.dedicated.length;
        });
        const taken = new Set(others.flat(2));
        const on = { layout, taken, own: new Set(last.flat()) };
        const chosen = chooseHostCpus(needsOf(counts), on);
        expect(chooseHostCpus(needsOf(counts), on)).toEqual(chosen);
        if (!isGranted) continue;
        if (chosen.kind === "refused") throw new Error(chosen.reason);
        const { held, vcpus } = chosen.pinning;
        expect(held).toHaveLength(counts[0] + counts[1]);
        expect(new Set(vcpus.flat()).size).toBe(held.length);
        for (const [node, place] of layout.places.entries())
          expect(held.filter((cpu) => place.dedicated.includes(cpu))).toHaveLength(counts[node] ?? 0);
        expect(held.filter((cpu) => taken.has(cpu))).toEqual([]);
        guests.set(server, isKept ? [...last, held] : [held]);
      }
    }),
    { numRuns: 500 },
  );
});
