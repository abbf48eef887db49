import { describe, expect, it } from "vitest";
import { sceneOf, serverRow, specWith } from "../../../test/rigs/facts-builders.ts";
import fc from "../../../test/rigs/property.ts";
import { HostWeights } from "../../../test/rigs/weigh-all-hosts.ts";
import { UNKNOWN_HYPERVISOR } from "../../ledger/hypervisor-facts.ts";
import { providerUuid, resourceClass } from "../../ledger/ids.ts";
import { CellFilters } from "../filters/cell-filters.ts";
import type { HostRequest } from "../host-request.ts";
import { hostRequestOf } from "../request/some-request.ts";
import { freeCpu } from "../weighers/free-cpu.ts";
import { hypervisorVersion } from "../weighers/hypervisor-version.ts";
import { ioOps } from "../weighers/io-ops.ts";
import { numInstances } from "../weighers/num-instances.ts";
import type { RelativeWeigher, WeighedBy } from "../weighers/weigher.ts";
import { ClassBook, DEFAULT_CLASS_LIMITS } from "./class-book.ts";
import type { HostClass } from "./host-class.ts";

const CELLS = 2;
const HOSTS = 20;
const SERVERS = 8;
const PASS_ALL = new CellFilters([], null, []);
const hostRequest: HostRequest = hostRequestOf({
  ...{ flavor: specWith(0).flavor!, imageProperties: {}, portRequests: [] },
  ...{ projectId: "p", availabilityZone: "", forcedHost: "", requestedHost: "" },
});
const weighers: readonly WeighedBy[] = [
  { weigher: freeCpu, multiplier: 1 },
  { weigher: ioOps, multiplier: -1 },
  { weigher: numInstances, multiplier: -0.5 },
  { weigher: hypervisorVersion, multiplier: 2 },
];

type Cloud = ReturnType<typeof cloud>;
const cloud = () =>
  Array.from({ length: CELLS }, (_, cell) => ({
    ...sceneOf(Object.fromEntries(Array.from({ length: HOSTS }, (_, host) => [`${cell}-${host}`, {}]))),
    name: `${cell}`,
  }));

const at = { cell: fc.nat({ max: CELLS - 1 }), host: fc.nat({ max: HOSTS - 1 }) };
interface Step {
  readonly kind: string;
  readonly cell: number;
  readonly host: number;
  readonly server: number;
}
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constantFrom("build", "run", "end"), ...at, server: fc.nat(SERVERS) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("hold"), ...at, server: fc.nat(SERVERS) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("upgrade", "downgrade"), ...at, server: fc.nat(SERVERS) }),
  },
);

function take(cells: Cloud, { kind, cell, host, server }: Step): void {
  const { view, facts } = cells[cell]!;
  const name = `${cell}-${host}`;
  const spec = specWith(cell * 1_000 + host * 10 + server);
  switch (kind) {
    case "build":
      facts.apply(serverRow(spec, name, { status: "BUILD" }));
      break;
    case "run":
      facts.apply(serverRow(spec, name));
      break;
    case "end":
      facts.apply({ kind: "server-removed", uuid: spec.uuid });
      break;
    case "hold":
      view.reserve(name, [{ provider: providerUuid(name), resourceClass: resourceClass("VCPU"), amount: server }]);
      break;
    default: {
      const hypervisor = { ...UNKNOWN_HYPERVISOR, version: kind === "upgrade" ? 2 : 0 };
      const row = { kind: "host-put", host: name, provider: providerUuid(name), up: true, disabled: false } as const;
      view.apply({ ...row, hypervisor });
      facts.apply({ ...row, hypervisor });
    }
  }
}

/** Weights of all ranked hosts by name: as the class keeps them, and as a new class computes them. */
function weightsOf(
  { rankings }: HostClass,
  by: readonly WeighedBy[],
): { readonly kept: number[]; readonly anew: number[] } {
  const batches = rankings.map(({ sorted, request, cell: { name, facts } }) => {
    const roots = Int32Array.from({ length: sorted.count }, (_, rank) => sorted.at(rank));
    return { cell: name, request, facts, roots, count: roots.length };
  });
  const kept = rankings.flatMap((ranking, cell) => Array.from(batches[cell]!.roots, (root) => ranking.weightOf(root)));
  return { kept, anew: Array.from(new HostWeights().weigh(batches, by).subarray(0, kept.length)) };
}

function expectSame({ kept, anew }: { readonly kept: readonly number[]; readonly anew: readonly number[] }): void {
  for (const [index, weight] of anew.entries()) expect(kept[index]).toBeCloseTo(weight, 9);
}

describe("rankings with moving ranges of weights", () => {
  const ask = (book: ClassBook, cells: Cloud, by: readonly WeighedBy[] = weighers) =>
    book.classOf({ hostRequest, spec: null, filters: [], weighers: by }, cells, PASS_ALL);

  it("have the weights of a full search once enough has changed, whichever hosts were weighed again", () => {
    fc.assert(
      fc.property(fc.array(fc.array(step, { maxLength: 30 }), { maxLength: 12 }), (rounds) => {
        const cells = cloud();
        const book = new ClassBook(DEFAULT_CLASS_LIMITS);
        ask(book, cells);
        for (const steps of rounds) {
          for (const taken of steps) take(cells, taken);
          // Causes so many changes that every range that has moved must be taken again. The numbers and ranges are small, so no range moves
          // by less than the bound.
          for (const { view } of cells) for (const root of view.slots.roots) view.touch(root);
          const hosts = ask(book, cells);
          expect(hosts.timesMade).toBe(1);
          expectSame(weightsOf(hosts, weighers));
          for (const ranking of hosts.rankings) {
            const { sorted } = ranking;
            for (let rank = 1; rank < sorted.count; rank += 1) {
              expect(ranking.weightOf(sorted.at(rank))).toBeLessThanOrEqual(ranking.weightOf(sorted.at(rank - 1)));
            }
          }
        }
      }),
      { numRuns: 100 },
    );
  });

  it("have the new weights at once when a flat range widens and when it becomes flat again", () => {
    const cells = cloud();
    const book = new ClassBook(DEFAULT_CLASS_LIMITS);
    const by = [
      { weigher: freeCpu, multiplier: 1 },
      { weigher: ioOps, multiplier: -1 },
    ];
    ask(book, cells, by);
    const build = (cell: number, host: number, server: number) => ({ kind: "build", cell, host, server });
    const rounds = [
      [build(0, 3, 1), build(1, 4, 1), build(1, 4, 2)],
      [build(0, 3, 1), build(1, 4, 1), build(1, 4, 2)].map((one) => ({ ...one, kind: "end" })),
      [build(1, 9, 1), build(1, 9, 2), build(1, 9, 3), build(0, 0, 1)],
    ];
    for (const steps of rounds) {
      for (const taken of steps) take(cells, taken);
      expectSame(weightsOf(ask(book, cells, by), by));
    }
  });

  it("weigh again only the hosts above the lowest weight when that weight is given", () => {
    const cells = cloud();
    const weighed: number[] = [];
    const counting: RelativeWeigher = {
      ...ioOps,
      weigh(batch, weights, offset) {
        weighed.push(batch.count);
        return ioOps.weigh(batch, weights, offset);
      },
    };
    const by = [{ weigher: counting, multiplier: -1 }];
    const book = new ClassBook(DEFAULT_CLASS_LIMITS);
    for (const server of [1, 2]) take(cells, { kind: "build", cell: 0, host: 1, server });
    take(cells, { kind: "build", cell: 1, host: 2, server: 1 });
    ask(book, cells, by);
    weighed.length = 0;
    take(cells, { kind: "end", cell: 0, host: 1, server: 2 });
    for (const root of cells[0]!.view.slots.roots.subarray(0, HOSTS)) cells[0]!.view.touch(root);
    const hosts = ask(book, cells, by);
    // First the touched hosts of the first cell, then one host above 0 in each cell.
    expect(weighed).toEqual([HOSTS, 1, 1]);
    const [first, second] = hosts.rankings;
    expect(first!.weightOf(cells[0]!.view.hosts.slotOf("0-1"))).toBe(-1);
    expect(second!.weightOf(cells[1]!.view.hosts.slotOf("1-2"))).toBe(-1);
  });

  it("equal those of a full search after a weigher threw during an update", () => {
    const cells = cloud();
    let isBroken = false;
    const failing: RelativeWeigher = {
      ...ioOps,
      weigh(batch, weights, offset) {
        if (isBroken) throw new Error("a fact that nobody thought of");
        return ioOps.weigh(batch, weights, offset);
      },
    };
    const by = [
      { weigher: numInstances, multiplier: -1 },
      { weigher: failing, multiplier: -1 },
    ];
    const book = new ClassBook(DEFAULT_CLASS_LIMITS);
    for (const host of [1, 2, 2]) take(cells, { kind: "build", cell: 0, host, server: host });
    ask(book, cells, by);
    take(cells, { kind: "build", cell: 0, host: 3, server: 1 });
    isBroken = true;
    expect(() => ask(book, cells, by)).toThrow();
    isBroken = false;
    expectSame(weightsOf(ask(book, cells, by), by));
  });
});
