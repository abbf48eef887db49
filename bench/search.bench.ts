import { CandidateSearch } from "../core/candidates/best/candidate-search.ts";
import { scanTrees } from "../core/candidates/best/scan-trees.ts";
import { BoundRequest } from "../core/candidates/bound/bound-request.ts";
import { type CandidateRequest, OPEN_HOSTS, type RequestGroup, requestGroup } from "../core/candidates/request.ts";
import { providerUuid, resourceClass, trait } from "../core/ledger/ids.ts";
import { LedgerView } from "../core/ledger/ledger-view.ts";
import { HostChooser } from "../core/scheduling/host-chooser.ts";
import type { CellHosts } from "../core/scheduling/ranking/cell-ranking.ts";
import { buildFailures } from "../core/scheduling/weighers/build-failures.ts";
import { freeCpu } from "../core/scheduling/weighers/free-cpu.ts";
import { freeMemory } from "../core/scheduling/weighers/free-memory.ts";
import { gpuBestFit } from "../core/scheduling/weighers/gpu-best-fit.ts";
import { OwnSlice } from "../core/scheduling/weighers/own-slice.ts";
import type { WeighedBy } from "../core/scheduling/weighers/weigher.ts";
import { measure, report } from "./measure.ts";

const FLAT_HOSTS = 10_000;
const GPU_HOSTS = 1_500;
const REPEATS = 200;

/** Measures a search for candidates, and one decision of a scheduler. Only computation is measured, without a database. */
export async function run(): Promise<void> {
  const flat = flatCell(FLAT_HOSTS);
  const small = [group("", { VCPU: 4, MEMORY_MB: 4_096, DISK_GB: 20 })];
  await searches(flat, small);
  await wideTrees();
  await decisions(flat, small);
}

async function searches(view: LedgerView, groups: readonly RequestGroup[]): Promise<void> {
  const asked = request(groups, 1_000);
  const roots = new Int32Array(FLAT_HOSTS);
  const scanUs = () => scanTrees(new BoundRequest(view, asked), 0, FLAT_HOSTS, roots);
  report(`all of ${FLAT_HOSTS} flat hosts that fit, as slots`, await measure(() => eachUs(scanUs)), "µs");
  for (const limit of [100, 1_000]) {
    const search = (start: number) => countCandidates(view, request(groups, limit), start);
    report(`${limit} candidates among ${FLAT_HOSTS} flat hosts`, await measure(() => eachUs(search)), "µs");
  }
}

/** Searches trees whose permutations number in the billions. */
async function wideTrees(): Promise<void> {
  for (const width of [8, 48]) {
    const view = gpuCell("wide", 1, () => width);
    const wanted = request(gpuGroups(width, 1_000), 1_000);
    report(
      `${width} groups over ${width} like children`,
      await measure(() => eachUs(() => countCandidates(view, wanted, 0))),
      "µs",
    );
    const tooMany = request(gpuGroups(width + 1, 1_000), 1_000);
    report(
      `${width + 1} groups over them: no`,
      await measure(() => eachUs(() => countCandidates(view, tooMany, 0))),
      "µs",
    );
  }
}

async function decisions(flat: LedgerView, small: readonly RequestGroup[]): Promise<void> {
  const cells = ["a", "b", "c"].map((name) => ({
    name,
    view: gpuCell(name, GPU_HOSTS / 3, (host) => [0, 4, 8, 8][host % 4]!),
  }));
  const gpuCpu = group("", { VCPU: 4, MEMORY_MB: 4_096 });
  const kinds: [string, readonly CellHosts[], readonly RequestGroup[]][] = [
    [`decision over ${FLAT_HOSTS} flat hosts`, [{ name: "flat", view: flat }], small],
    [`decision over ${GPU_HOSTS} GPU machines in 3 cells: CPU only`, cells, [gpuCpu]],
    [`the same: a share of one GPU`, cells, [gpuCpu, ...gpuGroups(1, 400)]],
    [`the same: one GPU of a model`, cells, [gpuCpu, ...gpuGroups(1, 1_000, "CUSTOM_GPU_1")]],
    [`the same: 8 whole GPUs`, cells, [gpuCpu, ...gpuGroups(8, 1_000)]],
  ];
  for (const [what, among, groups] of kinds) report(what, await measure(() => decisionUs(among, groups)), "µs");
}

function decisionUs(cells: readonly CellHosts[], groups: readonly RequestGroup[]): number {
  const chooser = new HostChooser();
  const weighers = schedulerWeighers();
  const query = { groups, groupPolicy: "isolate" } as const;
  const options = { alternates: 2, weighers, spread: 5, spreadTolerance: 0.05 };
  return eachUs((seed) => chooser.choose(query, cells, { ...options, seed: seed * 2_654_435_761 }));
}

function schedulerWeighers(): WeighedBy[] {
  const slice = new OwnSlice("scheduler-1");
  slice.setMembers(["scheduler-1", "scheduler-2"]);
  const failures = new Map([["flat-7", 2]]);
  return [
    { weigher: freeCpu, multiplier: 1 },
    { weigher: freeMemory, multiplier: 1 },
    { weigher: gpuBestFit, multiplier: 5 },
    { weigher: buildFailures(() => failures), multiplier: 4 },
    { weigher: slice, multiplier: 2 },
  ];
}

/** Time of a call in microseconds. */
function eachUs(call: (index: number) => unknown): number {
  const startedMs = performance.now();
  for (let index = 0; index < REPEATS; index += 1) call(index);
  return ((performance.now() - startedMs) * 1_000) / REPEATS;
}

function countCandidates(view: LedgerView, asked: CandidateRequest, start: number): number {
  let count = 0;
  for (const _ of new CandidateSearch(view, asked, { start: start * 137 })) count += 1;
  return count;
}

function request(groups: readonly RequestGroup[], limit: number): CandidateRequest {
  return { groups, groupPolicy: "isolate", trees: OPEN_HOSTS, limit };
}

function group(
  suffix: string,
  resources: Readonly<Record<string, number>>,
  required: readonly string[] = [],
): RequestGroup {
  const amounts = new Map(Object.entries(resources).map(([name, amount]) => [resourceClass(name), amount]));
  return requestGroup({ suffix, resources: amounts, requiredTraits: new Set(required.map(trait)) });
}

function gpuGroups(count: number, amount: number, ...required: readonly string[]): RequestGroup[] {
  return Array.from({ length: count }, (_, index) => group(`${index + 1}`, { CUSTOM_GPU_MILLI: amount }, required));
}

/** A cell in which every tenth host is full. */
function flatCell(hosts: number): LedgerView {
  const view = new LedgerView();
  for (let host = 0; host < hosts; host += 1) {
    const used = host % 10 === 0 ? 1 : (host % 7) / 10;
    addProvider(view, `flat-${host}`, null, { VCPU: 64, MEMORY_MB: 262_144, DISK_GB: 2_000 }, used);
    addHost(view, `flat-${host}`);
  }
  return view;
}

/** Machines with GPUs as children, of which a third is free, a third half used, and a third full. */
function gpuCell(name: string, hosts: number, gpusOf: (host: number) => number): LedgerView {
  const view = new LedgerView();
  for (let host = 0; host < hosts; host += 1) {
    const root = `${name}-${host}`;
    addProvider(view, root, null, { VCPU: 96, MEMORY_MB: 393_216 }, (host % 5) / 10);
    addHost(view, root);
    for (let gpu = 0; gpu < gpusOf(host); gpu += 1) {
      const child = `${root}-gpu${gpu}`;
      addProvider(view, child, root, { CUSTOM_GPU_MILLI: 1_000 }, hosts === 1 ? 0 : (host % 3) / 2);
      view.apply({ kind: "trait-added", provider: providerUuid(child), trait: trait(`CUSTOM_GPU_${host % 5}`) });
    }
  }
  return view;
}

function addHost(view: LedgerView, name: string): void {
  view.apply({ kind: "host-put", host: name, provider: providerUuid(name), up: true, disabled: false });
}

function addProvider(
  view: LedgerView,
  name: string,
  parent: string | null,
  totals: Readonly<Record<string, number>>,
  usedShare: number,
): void {
  const uuid = providerUuid(name);
  const parentUuid = parent === null ? null : providerUuid(parent);
  view.apply({ kind: "provider-put", uuid, name, parent: parentUuid, root: parentUuid ?? uuid, generation: 0 });
  for (const [className, total] of Object.entries(totals)) {
    const inventory = { total, reserved: 0, minUnit: 1, maxUnit: total, stepSize: 1, allocationRatio: 1 };
    const used = Math.floor(total * usedShare);
    view.apply({ kind: "inventory-put", provider: uuid, resourceClass: resourceClass(className), inventory, used });
  }
}
