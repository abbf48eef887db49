import type { AllocationRequest, Selection } from "../../proto/gen/berth/shared.ts";
import { CODE_GAVE_UP, CODE_NO_COMBINATION, CompiledRequest } from "../candidates/compiled-request.ts";
import { type RefusalCount, sumRefusals } from "../candidates/refusal.ts";
import { type CandidateRequest, OPEN_HOSTS } from "../candidates/request.ts";
import { scanTrees } from "../candidates/scan-trees.ts";
import { candidateOf, WORK_PER_TREE } from "../candidates/search.ts";
import { type Assignment, assignmentsOfTree } from "../candidates/tree-search.ts";
import { WorkBudget } from "../candidates/work-budget.ts";
import type { LedgerView } from "../ledger/view.ts";
import { chooseAlternates, type StandbyHosts } from "./choose-alternates.ts";
import type { PlacementQuery } from "./placement-query.ts";
import { rankHosts } from "./rank-hosts.ts";
import { seededRandom } from "./seeded-random.ts";
import { HostWeights } from "./weigh-hosts.ts";
import type { HostBatch, WeighedBy } from "./weighers/weigher.ts";

/** A cell that a server may go to. */
export interface CellHosts {
  readonly name: string;
  readonly view: LedgerView;
}

export interface ChoiceOptions {
  /** Decides between hosts that are about as good: the same seed over the same views gives the same choice. */
  readonly seed: number;
  /** Most alternates beside the chosen host. */
  readonly alternates: number;
  /** Hosts by cell that are out of the question. */
  readonly excludedHosts?: ReadonlyMap<string, ReadonlySet<string>>;
  readonly weighers: readonly WeighedBy[];
  /** The chosen host is one of the best so many … */
  readonly spread: number;
  /** … whose weight is at most so much below the best. */
  readonly spreadTolerance: number;
  /** Name of the failure domain of the host with this root; undefined: it is in none. */
  readonly failureDomainOf?: (cell: string, root: number) => string | undefined;
}

export type HostChoice =
  /**
   * The chosen host, then its alternates, best first, all of one cell. An alternate that the request fits on in several ways
   * comes several times, one after the other.
   */
  | { readonly kind: "chosen"; readonly cell: string; readonly selections: readonly Selection[] }
  /** No host fits now; why, counted. */
  | { readonly kind: "none"; readonly refusals: readonly RefusalCount[]; readonly trees: number };

/** Hosts ranked at first; all of them only if these turn out not to fit after all. */
const RANKED_AT_FIRST = 16;

/**
 * Chooses a host and alternates for a request among cells: sieve → weigh → rank → combine, the last (which provider serves which
 * request group) only for the hosts that are looked at. Keeps buffers between calls; decides by its arguments alone.
 *
 * Cost: some 20 ns a host, plus some microseconds a host that is looked at.
 */
export class HostChooser {
  readonly #weights = new HostWeights();
  #buffers: Int32Array[] = [];

  choose(query: PlacementQuery, cells: readonly CellHosts[], options: ChoiceOptions): HostChoice {
    const batches = cells.map((cell, index) => this.#sieve(query, cell, index, options.excludedHosts?.get(cell.name)));
    const weights = this.#weights.weigh(batches, options.weighers);
    const pool = new HostPool(batches, weights, options.seed);
    const best = this.#pickBest(pool, options);
    if (best === null) {
      const trees = cells.reduce((sum, cell) => sum + cell.view.slots.rootCount, 0);
      return { kind: "none", refusals: sumRefusals(batches.flatMap((batch) => batch.request.refusals())), trees };
    }
    const cell = best.batch.cell;
    const root = best.assignment.root;
    const { failureDomainOf } = options;
    const hosts = pool.standby(best.batch);
    const alternates = chooseAlternates(hosts, {
      most: options.alternates,
      seed: options.seed,
      taken: new Set([root]),
      ...(failureDomainOf && { domainOf: (slot: number) => failureDomainOf(cell, slot) }),
    });
    const selections = alternates.flatMap(({ root, ways }) => ways.map((way) => selectionOf(best.batch, root, way)));
    return { kind: "chosen", cell, selections: [selectionOf(best.batch, root, wayOf(best)), ...selections] };
  }

  #sieve(
    query: PlacementQuery,
    cell: CellHosts,
    index: number,
    excludedHosts: ReadonlySet<string> | undefined,
  ): HostBatch {
    const trees = excludedHosts ? { ...OPEN_HOSTS, excludedHosts } : OPEN_HOSTS;
    const asked: CandidateRequest = { groups: query.groups, groupPolicy: query.groupPolicy, trees, limit: 1 };
    const request = new CompiledRequest(cell.view, asked);
    const total = cell.view.slots.rootCount;
    let roots = this.#buffers[index];
    if (!roots || roots.length < total) {
      roots = new Int32Array(total * 2);
      this.#buffers[index] = roots;
    }
    return { cell: cell.name, request, roots, count: scanTrees(request, 0, total, roots) };
  }

  /** One of the best at random; the next one if it turns out not to fit. */
  #pickBest(pool: HostPool, options: ChoiceOptions): PlacedHost | null {
    const random = seededRandom(options.seed);
    const peers = pool.best(options.spread, options.spreadTolerance);
    while (peers.length > 0) {
      const [at] = peers.splice(Math.floor(random() * peers.length), 1);
      const placed = pool.place(at!);
      if (placed) return placed;
    }
    return pool.take(1)[0] ?? null;
  }
}

/** A host with the way the request fits there. */
interface PlacedHost {
  readonly batch: HostBatch;
  readonly assignment: Assignment;
}

/** The hosts that may fit, best first; whether one really does is found out when it is asked for, once. */
class HostPool {
  readonly #batches: readonly HostBatch[];
  readonly #weights: Float64Array;
  readonly #total: number;
  readonly #seed: number;
  #ranked: readonly number[];
  /** Already given out, or found not to fit. */
  readonly #spent = new Set<number>();

  constructor(batches: readonly HostBatch[], weights: Float64Array, seed: number) {
    this.#batches = batches;
    this.#weights = weights;
    this.#seed = seed;
    this.#total = batches.reduce((sum, batch) => sum + batch.count, 0);
    this.#ranked = rankHosts(weights, this.#total, RANKED_AT_FIRST, seed);
  }

  /** The best hosts within the tolerance, unproven. */
  best(most: number, tolerance: number): number[] {
    const [first] = this.#ranked;
    if (first === undefined) return [];
    const least = this.#weights[first]! - tolerance;
    return this.#ranked.slice(0, most).filter((at) => this.#weights[at]! >= least);
  }

  /** Up to `most` hosts that fit, best first. */
  take(most: number): PlacedHost[] {
    const taken: PlacedHost[] = [];
    for (let index = 0; taken.length < most && index < this.#total; index += 1) {
      if (index === this.#ranked.length) this.#ranked = rankHosts(this.#weights, this.#total, this.#total, this.#seed);
      const at = this.#ranked[index]!;
      if (this.#spent.has(at)) continue;
      const placed = this.place(at);
      if (placed) taken.push(placed);
    }
    return taken;
  }

  /** The hosts of a batch as alternates are drawn from them. */
  standby(batch: HostBatch): StandbyHosts {
    const offset = this.#offsetOf(batch);
    return {
      count: batch.count,
      weight: (at) => this.#weights[offset + at]!,
      root: (at) => batch.roots[at]!,
      waysOn: (at, most) => waysOn(batch, batch.roots[at]!, most),
    };
  }

  place(at: number): PlacedHost | null {
    this.#spent.add(at);
    const batch = this.#batchOf(at);
    const root = batch.roots[at - this.#offsetOf(batch)]!;
    const budget = new WorkBudget(WORK_PER_TREE);
    const { done, value } = assignmentsOfTree(batch.request, root, budget).next();
    if (!done) return { batch, assignment: value };
    batch.request.refuse(budget.spent ? CODE_GAVE_UP : CODE_NO_COMBINATION);
    return null;
  }

  #batchOf(at: number): HostBatch {
    let end = 0;
    return this.#batches.find((batch) => {
      end += batch.count;
      return at < end;
    })!;
  }

  #offsetOf(batch: HostBatch): number {
    let offset = 0;
    for (const before of this.#batches) {
      if (before === batch) return offset;
      offset += before.count;
    }
    return offset;
  }
}

function waysOn(batch: HostBatch, root: number, most: number): AllocationRequest[] {
  const ways: AllocationRequest[] = [];
  for (const assignment of assignmentsOfTree(batch.request, root, new WorkBudget(WORK_PER_TREE))) {
    ways.push(wayOf({ batch, assignment }));
    if (ways.length === most) break;
  }
  return ways;
}

/** The wire's form of a way to fit. A group that is served by several providers names them with commas between. */
function wayOf({ batch, assignment }: PlacedHost): AllocationRequest {
  const candidate = candidateOf(batch.request.view, assignment);
  return {
    items: candidate.items.map((item) => ({ ...item })),
    mappings: Object.fromEntries([...candidate.mappings].map(([suffix, providers]) => [suffix, providers.join()])),
  };
}

function selectionOf(batch: HostBatch, root: number, allocation: AllocationRequest): Selection {
  const { hosts, slots } = batch.request.view;
  return { host: hosts.nameOf(root) ?? "", rootProvider: slots.uuid(root), availabilityZone: "", allocation };
}
