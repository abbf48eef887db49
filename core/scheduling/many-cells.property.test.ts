import { expect, it } from "vitest";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { aggregate, serverRow, specWith } from "../../test/rigs/facts-builders.ts";
import { settingsOf } from "../../test/rigs/filter-cases.ts";
import fc from "../../test/rigs/property.ts";
import { host, provider, viewOf } from "../../test/rigs/view-builders.ts";
import { scanTrees } from "../candidates/best/scan-trees.ts";
import { BoundRequest } from "../candidates/bound/bound-request.ts";
import { requestGroup } from "../candidates/request.ts";
import { providerUuid, resourceClass } from "../ledger/ids.ts";
import { AggregateIndex } from "./aggregate-index.ts";
import { bindFilters, hostFilters, refusedBy } from "./filters/host-filters.ts";
import { type ChoiceOptions, HostChooser } from "./host-chooser.ts";
import { type HostRequest, searchOf } from "./host-request.ts";
import { LiveCellFacts } from "./live-cell-facts.ts";
import { bestFit } from "./weighers/best-fit.ts";
import { buildFailures } from "./weighers/build-failures.ts";
import { crossCellMove } from "./weighers/cross-cell-move.ts";
import { freeCpu } from "./weighers/free-cpu.ts";
import { hostMultiplier } from "./weighers/host-multiplier.ts";
import { ioOps } from "./weighers/io-ops.ts";
import { numInstances } from "./weighers/num-instances.ts";
import { OwnSlice } from "./weighers/own-slice.ts";
import { RecentPicks } from "./weighers/recent-picks.ts";
import { softAffinity } from "./weighers/soft-affinity.ts";
import type { HostBatch, WeighedBy } from "./weighers/weigher.ts";

const CELLS = 5;
const ALL_CELLS = Array.from({ length: CELLS }, (_, cell) => cell);
const HOSTS = 5;
/** The host that has the most of each kind in every zone of every cell, and the one that has the least. Neither ever changes. */
const ZONES = ["", "east", "west"] as const;
const BUSIEST_SERVERS = 9;
const SERVERS_MAX = 4;
const GROUPS = ["soft", "apart", "together"] as const;
const POLICIES = { soft: "soft-affinity", apart: "anti-affinity", together: "affinity" } as const;
const VCPU = resourceClass("VCPU");

const filters = hostFilters(
  settingsOf({
    enabled_filters: [
      ...["ComputeFilter", "AvailabilityZoneFilter", "AggregateMultiTenancyIsolation", "DifferentHostFilter"],
      ...["ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter", "AggregateTypeAffinityFilter"],
    ].join(),
  }),
);
const asking = (vcpus: number): HostRequest => ({
  groups: [requestGroup({ resources: new Map([[VCPU, vcpus]]) })],
  groupPolicy: "none",
});
const REQUESTS = [asking(1), asking(3)];

const specOf = (server: number, group: string | null, over: Partial<ServerSpec> = {}): ServerSpec =>
  specWith(server, {
    ...over,
    ...(group !== null && {
      group: { uuid: group, policy: POLICIES[group as (typeof GROUPS)[number]], maxServerPerHost: 1 },
    }),
  });

/** A cell whose least and busiest hosts keep the ranges of all weighers the same, so that weights must be exact. */
function newCell(cell: number) {
  const name = `${cell}`;
  const plain = Array.from({ length: HOSTS }, (_, index) => [
    ...provider(`${cell}-${index}`, { VCPU: 16 + index }),
    host(`${cell}-${index}`, `${cell}-${index}`),
  ]);
  const ends = ZONES.flatMap((zone) => [
    [...provider(`${cell}-least${zone}`, { VCPU: 64 }), host(`${cell}-least${zone}`, `${cell}-least${zone}`)],
    [
      ...provider(`${cell}-busiest${zone}`, { VCPU: 64 }, { used: 60 }),
      host(`${cell}-busiest${zone}`, `${cell}-busiest${zone}`),
    ],
  ]);
  const view = viewOf(...plain, ...ends);
  const facts = new LiveCellFacts(name, view);
  for (const [at, zone] of ZONES.entries()) {
    for (let index = 0; index < BUSIEST_SERVERS; index += 1) {
      const spec = specOf(100_000 + (cell * ZONES.length + at) * 100 + index, index < SERVERS_MAX + 2 ? "soft" : null);
      facts.apply(serverRow(spec, `${cell}-busiest${zone}`, { status: "BUILD" }));
    }
  }
  return { name, view, facts };
}

const cellAt = fc.nat({ max: CELLS - 1 });
const hostAt = fc.nat({ max: HOSTS - 1 });
const hostNames = fc.uniqueArray(fc.tuple(cellAt, hostAt), { maxLength: 8 });
const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant("server" as const),
        ...{ cell: cellAt, host: fc.option(hostAt), server: fc.nat(SERVERS_MAX - 1) },
        ...{ group: fc.option(fc.constantFrom(...GROUPS)), isBusy: fc.boolean() },
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("up" as const), cell: cellAt, host: hostAt, up: fc.boolean() }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("used" as const), cell: cellAt, host: hostAt, used: fc.nat(16) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("aggregates" as const),
        ...{ east: hostNames, west: hostNames, tenant: hostNames, heavy: hostNames, hasFlavors: fc.boolean() },
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("failures" as const), of: hostNames }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("picks" as const), of: hostNames }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant("schedulers" as const), number: fc.integer({ min: 1, max: 3 }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("reload" as const), cell: cellAt }) },
    {
      weight: 12,
      arbitrary: fc.record({
        kind: fc.constant("decide" as const),
        request: fc.nat(REQUESTS.length - 1),
        seed: fc.nat(2 ** 31),
        zone: fc.constantFrom("", "", "", "east"),
        project: fc.constantFrom("p1", "p2"),
        group: fc.option(fc.constantFrom(...GROUPS)),
        open: fc.constantFrom(ALL_CELLS, ALL_CELLS, ALL_CELLS, [1, 4, 3]),
        excluded: fc.option(hostNames),
        different: fc.option(fc.tuple(cellAt, fc.nat(SERVERS_MAX - 1))),
      }),
    },
  ),
  { minLength: 15, maxLength: 40 },
);
type Step = (typeof steps extends fc.Arbitrary<infer All> ? All : never) extends readonly (infer One)[] ? One : never;
type Decide = Step & { readonly kind: "decide" };

const multiplier = fc.constantFrom(-2, -0.5, 0, 0.1, 1, 3);
const multipliers = fc.array(multiplier, { minLength: 9, maxLength: 9 });

const serverNumber = (cell: number, server: number) => cell * 1_000 + server;

/** Some cells with a scheduler that keeps its rankings from one decision to the next. */
class World {
  readonly cells = Array.from({ length: CELLS }, (_, cell) => newCell(cell));
  readonly #chooser = new HostChooser();
  readonly #slice = new OwnSlice("s1");
  readonly #picks = new RecentPicks();
  readonly #failures = new Map<string, ReadonlyMap<string, number>>();
  readonly #weighers: readonly WeighedBy[];
  #claims = 0;

  constructor(by: readonly number[]) {
    this.#weighers = [
      ...[freeCpu, numInstances, ioOps, softAffinity, bestFit({ bestFitClasses: [] } as never), this.#slice],
      ...[this.#picks, buildFailures((cell) => this.#failures.get(cell)), crossCellMove("1")],
    ].map((weigher, index) => ({
      weigher,
      multiplier: by[index]!,
      ...(index === 0 && { option: "cpu_weight_multiplier" }),
    }));
    this.#setAggregates({ east: [], west: [], tenant: [], heavy: [], hasFlavors: false });
  }

  take(step: Step): void {
    switch (step.kind) {
      case "server": {
        const spec = specOf(serverNumber(step.cell, step.server), step.group, { projectId: "p1" });
        const at = step.host === null ? null : `${step.cell}-${step.host}`;
        const row = serverRow(spec, at, { status: step.isBusy ? "BUILD" : "ACTIVE", specRevision: this.#claims });
        this.#claims += 1;
        this.cells[step.cell]!.facts.apply(row);
        break;
      }
      case "up":
        this.cells[step.cell]!.view.apply(
          host(`${step.cell}-${step.host}`, `${step.cell}-${step.host}`, { up: step.up }),
        );
        break;
      case "used":
        this.cells[step.cell]!.view.applyAll(
          provider(`${step.cell}-${step.host}`, { VCPU: 16 + step.host }, { used: step.used }),
        );
        break;
      case "aggregates":
        this.#setAggregates(step);
        break;
      case "failures":
        for (const { name } of this.cells) this.#failures.delete(name);
        for (const [cell, index] of step.of)
          this.#failures.set(`${cell}`, new Map([...(this.#failures.get(`${cell}`) ?? []), [`${cell}-${index}`, 2]]));
        for (const { view } of this.cells) view.touchAll();
        break;
      case "picks":
        for (const { cell, host: name } of this.#picks.set(
          step.of.map(([cell, index]) => ({ cell: `${cell}`, host: `${cell}-${index}` })),
        )) {
          const { view } = this.cells[Number(cell)]!;
          view.touch(view.hosts.slotOf(name));
        }
        break;
      case "schedulers":
        this.#slice.setMembers(Array.from({ length: step.number }, (_, index) => `s${index + 1}`));
        break;
      case "reload":
        this.cells[step.cell]!.view.adopt(newCell(step.cell).view);
        break;
      case "decide":
        this.#decide(step);
        break;
      default:
        step satisfies never;
    }
  }

  #decide(step: Decide): void {
    const { zone: availabilityZone, project: projectId, different } = step;
    const hints =
      different === null ? [] : [{ name: "different_host", values: [specWith(serverNumber(...different)).uuid] }];
    const spec = specOf(5_000, step.group, { availabilityZone, projectId, hints });
    const open = step.open.map((index) => this.cells[index]!);
    const excludedHosts = new Map<string, Set<string>>();
    for (const [cell, index] of step.excluded ?? [])
      excludedHosts.set(`${cell}`, new Set([...(excludedHosts.get(`${cell}`) ?? []), `${cell}-${index}`]));
    const options: ChoiceOptions = {
      ...{ seed: step.seed, alternates: 2, excludedHosts, weighers: this.#weighers, spec, filters },
      ...{ spread: 1, spreadTolerance: 0 },
    };
    const plain = this.#weighPlainly(REQUESTS[step.request]!, open, options);
    const best = this.#chooser.best(REQUESTS[step.request]!, open, options, 1_000);
    expect(best.map((one) => one.host).toSorted()).toEqual([...plain.keys()].toSorted());
    const order = best.map((one) => one.weight);
    expect(order).toEqual(order.toSorted((a, b) => b - a));
    for (const one of best) expect(one.weight).toBeCloseTo(plain.get(one.host)!, 9);
    const choice = this.#chooser.choose(REQUESTS[step.request]!, open, options);
    if (choice.kind !== "chosen") {
      expect([choice.kind, plain.size]).toEqual(["none", 0]);
      return;
    }
    const [chosen, ...alternates] = choice.selections.map((selection) => selection.host);
    expect(plain.get(chosen!)).toBeCloseTo(Math.max(...plain.values()), 9);
    const inCell = [...plain.keys()].filter((name) => name.startsWith(`${choice.cell}-`));
    for (const alternate of alternates) expect(inCell.filter((name) => name !== chosen)).toContain(alternate);
    expect(alternates.length).toBe(Math.min(2, inCell.length - 1));
    this.#claim(choice.cell, chosen!, step.request);
  }

  /** Claims on all hosts but those that keep the ranges of weights the same. */
  #claim(cell: string, name: string, request: number): void {
    if (name.includes("least") || name.includes("busiest")) return;
    const [amount] = REQUESTS[request]!.groups[0]!.resources.values();
    this.#claims += 1;
    this.cells[Number(cell)]!.view.reserve(`claim-${this.#claims}`, [
      { provider: providerUuid(name), resourceClass: VCPU, amount: amount! },
    ]);
  }

  #setAggregates({
    east,
    west,
    tenant,
    heavy,
    hasFlavors,
  }: Pick<Step & { kind: "aggregates" }, "east" | "west" | "tenant" | "heavy" | "hasFlavors">): void {
    const names = (of: readonly (readonly [number, number])[]) => of.map(([cell, index]) => `${cell}-${index}`);
    const ends = (zone: string) => this.cells.flatMap(({ name }) => [`${name}-least${zone}`, `${name}-busiest${zone}`]);
    const eastern = names(east);
    const records = [
      aggregate(1, { availability_zone: "east" }, [...eastern, ...ends("east")]),
      aggregate(2, { availability_zone: "west" }, [
        ...names(west).filter((name) => !eastern.includes(name)),
        ...ends("west"),
      ]),
      ...(tenant.length > 0 ? [aggregate(3, { filter_tenant_id: "p2" }, names(tenant))] : []),
      ...(heavy.length > 0 ? [aggregate(4, { cpu_weight_multiplier: "7" }, names(heavy))] : []),
      ...(hasFlavors ? [aggregate(5, { instance_type: "another" }, names(heavy))] : []),
    ];
    const index = new AggregateIndex(records, "nova");
    for (const { facts } of this.cells) facts.setAggregates(index);
  }

  /** The weight of each host that the request may use, computed over all hosts without anything that a scheduler keeps. */
  #weighPlainly(
    request: HostRequest,
    open: World["cells"],
    { spec, excludedHosts }: ChoiceOptions,
  ): Map<string, number> {
    const bound = open.map((cell) => bindFilters(filters, spec!, cell));
    const batches = open.map(({ name, view, facts }, cell): HostBatch => {
      const compiled = new BoundRequest(view, searchOf(request));
      const all = new Int32Array(view.slots.rootCount);
      const scanned = all.subarray(0, scanTrees(compiled, 0, all.length, all));
      const roots = scanned.filter((root) => refusedBy(bound[cell]!.kind, facts.at(root)!) === null);
      return { cell: name, request: compiled, facts, spec: spec!, roots, count: roots.length };
    });
    const weights = batches.map(({ count }) => new Float64Array(count));
    for (const weighedBy of this.#weighers) addPlainly(weighedBy, batches, weights);
    const byHost = new Map<string, number>();
    for (const [cell, { roots, facts }] of batches.entries()) {
      for (const [index, root] of roots.entries()) {
        const at = facts!.at(root)!;
        if (refusedBy(bound[cell]!.request, at) !== null || excludedHosts?.get(open[cell]!.name)?.has(at.name))
          continue;
        byHost.set(at.name, weights[cell]![index]!);
      }
    }
    return byHost;
  }
}

/** Adds one weigher's weights as Nova computes them: normalised over the hosts of all cells together, unless they are absolute. */
function addPlainly(weighedBy: WeighedBy, batches: readonly HostBatch[], weights: readonly Float64Array[]): void {
  const { weigher } = weighedBy;
  const raw = batches.map(({ count }) => new Float64Array(count));
  const said = batches.map((batch, cell) => {
    if (weigher.kind === "relative") return weigher.weigh(batch, raw[cell]!, 0);
    weigher.addTo(batch, raw[cell]!, 0, 1);
    return true;
  });
  if (!said.includes(true)) return;
  const all = raw.flatMap((some) => [...some]);
  const least = weigher.kind === "relative" ? (weigher.lowest ?? Math.min(...all)) : 0;
  const span = weigher.kind === "relative" ? Math.max(...all) - least : 1;
  for (const [cell, { roots, facts }] of batches.entries()) {
    const multiplierOf = hostMultiplier(weighedBy, facts) ?? (() => weighedBy.multiplier);
    for (const [index, value] of raw[cell]!.entries()) {
      const normalised = span > 0 ? (value - least) / span : 0;
      weights[cell]![index]! += multiplierOf(roots[index]!) * normalised;
    }
  }
}

it("a decision over many cells is that of a full computation over all their hosts, whatever changed between decisions", () => {
  fc.assert(
    fc.property(multipliers, steps, (by, taken) => {
      const world = new World(by);
      for (const step of taken) world.take(step);
    }),
    { numRuns: 80 },
  );
});
