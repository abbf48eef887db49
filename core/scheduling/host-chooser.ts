import type { Selection, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { RefusalCount } from "../candidates/refusal.ts";
import { type SearchBudget, stepsOnly } from "../candidates/search-budget.ts";
import { chooseAlternates } from "./choose-alternates.ts";
import { examineCell } from "./explain/examine-cell.ts";
import { type CellFunnel, refusalsOf, sumFunnels } from "./explain/funnel.ts";
import { failureDomainOf } from "./failure-domain.ts";
import { CellFilters } from "./filters/cell-filters.ts";
import type { HostFilter } from "./filters/host-filter.ts";
import type { HostRequest } from "./host-request.ts";
import type { CellHosts, CellRanking } from "./ranking/cell-ranking.ts";
import { ClassBook, type ClassLimits, DEFAULT_CLASS_LIMITS } from "./ranking/class-book.ts";
import type { WeightPart } from "./ranking/class-weights.ts";
import type { HostClass } from "./ranking/host-class.ts";
import { selectionOf } from "./ranking/place-on-tree.ts";
import { type PlacedHost, RankedHosts } from "./ranking/ranked-hosts.ts";
import { seededRandom } from "./seeded-random.ts";
import type { StageWatch } from "./stage-watch.ts";
import type { WeighedBy } from "./weighers/weigher.ts";

export interface ChoiceOptions {
  /** Decides between hosts that are about equally good. The same seed over the same views gives the same choice. */
  readonly seed: number;
  /** Maximum number of alternates beside the chosen host. */
  readonly alternates: number;
  /** By cell: hosts that must not be chosen. */
  readonly excludedHosts?: ReadonlyMap<string, ReadonlySet<string>>;
  readonly weighers: readonly WeighedBy[];
  /** The server spec that host filters and weighers read. Without it no filter is applied. */
  readonly spec?: ServerSpec;
  /** The host filters, in the order in which they are applied. */
  readonly filters?: readonly HostFilter[];
  /** Number of best hosts from which the chosen host is drawn. */
  readonly spread: number;
  /** How far, at most, the weight of such a host may lie below the best one's. */
  readonly spreadTolerance: number;
  /**
   * The budget for searching hosts with several providers, over all calls for one decision. Without it the default number of steps applies.
   */
  readonly search?: SearchBudget;
  /** Called at the start of each stage; it does not influence the choice. */
  readonly watch?: StageWatch;
}

/** How much a host weighs for a request, and why. */
export interface HostWeight {
  readonly cell: string;
  readonly host: string;
  readonly weight: number;
  readonly parts: readonly WeightPart[];
}

export type HostChoice =
  /**
   * The chosen host, then its alternates, best first, all in one cell. An alternate on which the request fits in several ways occurs
   * several times in a row.
   */
  | {
      readonly kind: "chosen";
      readonly cell: string;
      readonly selections: readonly Selection[];
      /** Number of hosts that were examined for whether the request fits there. */
      readonly lookedAt: number;
      /** Number of hosts that fit. Hosts that were not examined count when nothing yet shows that they do not fit. */
      readonly feasible: number;
      /**
       * The weights of the chosen hosts with their parts, in order, each host once. Call it in the same turn of the event loop, before any
       * await.
       */
      readonly weights: () => readonly HostWeight[];
    }
  /** No host fits now. `refusals` counts the reasons. */
  | {
      readonly kind: "none";
      readonly refusals: readonly RefusalCount[];
      readonly trees: number;
      /** The same reasons, counted for each step of the search. */
      readonly funnels: readonly CellFunnel[];
      readonly lookedAt: number;
    };

/** The slice of the search has ended without a decision. Call again after other work has had its turn. */
export interface PausedChoice {
  readonly kind: "paused";
  readonly lookedAt: number;
}

const NO_FILTERS: readonly HostFilter[] = [];
const NO_HOSTS: ReadonlySet<string> = new Set();
const NO_ROOTS: ReadonlySet<number> = new Set();

/**
 * Chooses a host and alternates for a request among cells, from the ranking of the request's class: the hosts that fit requests like this
 * one, filtered and weighed, and kept up to date with the views from one request to the next (see ranking/host-class.ts). What only this
 * request decides, and how it fits on a tree of several providers, is computed for the examined hosts only.
 *
 * The same seed over the same views gives the same choice, except for the distance that ranges of weights have moved since the class was
 * made.
 *
 * Cost: a few microseconds regardless of the number of hosts, plus half a microsecond for each host that changed since the class was last
 * used, and some 10 ns for each cell. A new class costs some 100 ns a host.
 */
export class HostChooser {
  readonly #book: ClassBook;

  constructor(limits: ClassLimits = DEFAULT_CLASS_LIMITS) {
    this.#book = new ClassBook(limits);
  }

  /** Size of the kept classes, for monitoring. */
  get classes(): Pick<ClassBook, "size" | "memoryBytes" | "timesMade"> {
    return this.#book;
  }

  /** Runs all slices of the search in one turn of the event loop. */
  choose(hostRequest: HostRequest, cells: readonly CellHosts[], options: ChoiceOptions): HostChoice {
    const search = options.search ?? stepsOnly();
    for (;;) {
      const choice = this.chooseSlice(hostRequest, cells, options, search);
      if (choice.kind !== "paused") return choice;
      search.beginSlice();
    }
  }

  /**
   * Runs one slice of the search. After `paused`, call it again after `search.beginSlice()`. Hosts that did not fit stay left out until
   * they change, so it continues with the others, over the views as they are by then.
   */
  chooseSlice(
    hostRequest: HostRequest,
    cells: readonly CellHosts[],
    options: ChoiceOptions,
    search: SearchBudget,
  ): HostChoice | PausedChoice {
    const { hosts, bound, ranked } = this.#rank(hostRequest, cells, options, search);
    const best = pickBest(ranked, options);
    const choice = best ? chosen(hosts, ranked, best, options) : null;
    ranked.settle();
    const { lookedAt } = ranked;
    const isPaused = !choice && search.isClosed && search.spentBy === null;
    const outcome: HostChoice | PausedChoice =
      choice ??
      (isPaused
        ? { kind: "paused", lookedAt }
        : { ...noneOf(hosts, hostRequest, bound, { excludedHosts: options.excludedHosts, search }), lookedAt });
    search.endSlice();
    return outcome;
  }

  /**
   * The alternates of a server whose host is already chosen, as `choose` would give them. It serves requests for several servers, whose
   * hosts are all chosen before any of their alternates. `chosen.cell` must be one of the cells.
   */
  alternatesOf(
    chosen: { readonly cell: string; readonly host: string },
    hostRequest: HostRequest,
    cells: readonly CellHosts[],
    options: ChoiceOptions,
  ): readonly Selection[] {
    const { hosts, ranked } = this.#rank(hostRequest, cells, options, options.search ?? stepsOnly());
    const ranking = hosts.rankings.find(({ cell }) => cell.name === chosen.cell);
    if (!ranking) return [];
    const selections = standbysOf(ranked, ranking, ranking.cell.view.hosts.slotOf(chosen.host), options);
    ranked.settle();
    return selections;
  }

  /** The best `most` hosts on which the request fits, in the order in which they would be tried. */
  best(hostRequest: HostRequest, cells: readonly CellHosts[], options: ChoiceOptions, most: number): HostWeight[] {
    const { hosts, ranked } = this.#rank(hostRequest, cells, options, options.search ?? stepsOnly());
    const best: HostWeight[] = [];
    while (best.length < most) {
      const placed = ranked.takeNext();
      if (!placed) break;
      best.push(weightOf(hosts, placed.ranking, placed.root));
    }
    ranked.settle();
    return best;
  }

  #rank(hostRequest: HostRequest, cells: readonly CellHosts[], options: ChoiceOptions, search: SearchBudget) {
    const { seed, excludedHosts, weighers, spec = null, filters = NO_FILTERS, watch } = options;
    watch?.enter("filter");
    const bound = new CellFilters(filters, spec, cells);
    const hosts = this.#book.classOf({ hostRequest, spec, filters, weighers, watch }, cells, bound);
    watch?.enter("combine");
    const ranked = new RankedHosts(hosts, {
      seed,
      filtersOf: (cell) => bound.requestOf(cell),
      excludedOf: excludedRoots(cells, excludedHosts),
      search,
    });
    return { hosts, bound, ranked };
  }
}

/** By a cell's index: the roots of its excluded hosts, which are looked up when a host of the cell is examined. */
function excludedRoots(
  cells: readonly CellHosts[],
  excludedHosts: ChoiceOptions["excludedHosts"],
): (cell: number) => ReadonlySet<number> {
  if (!excludedHosts || excludedHosts.size === 0) return () => NO_ROOTS;
  const known: (ReadonlySet<number> | undefined)[] = [];
  return (index) => {
    const cell = cells[index]!;
    const roots = known[index] ?? rootsOf(cell, excludedHosts.get(cell.name));
    known[index] = roots;
    return roots;
  };
}

function rootsOf({ view }: CellHosts, hosts: ReadonlySet<string> | undefined): ReadonlySet<number> {
  if (!hosts || hosts.size === 0) return NO_ROOTS;
  return new Set(Array.from(hosts, (host) => view.hosts.slotOf(host)));
}

/** Takes one of the best hosts at random, or the next one when that host turns out not to fit. */
function pickBest(ranked: RankedHosts, { spread, spreadTolerance, seed }: ChoiceOptions): PlacedHost | null {
  const random = seededRandom(seed);
  const peers = ranked.takeBest(spread, spreadTolerance);
  while (peers.length > 0) {
    const [host] = peers.splice(Math.floor(random() * peers.length), 1);
    const placed = ranked.place(host!);
    if (placed) return placed;
  }
  return ranked.takeNext();
}

function chosen(hosts: HostClass, ranked: RankedHosts, best: PlacedHost, options: ChoiceOptions): HostChoice {
  const { ranking, root, way } = best;
  const selections = [selectionOf(ranking.request, root, way), ...standbysOf(ranked, ranking, root, options)];
  return {
    kind: "chosen",
    cell: ranking.cell.name,
    selections,
    lookedAt: ranked.lookedAt,
    feasible: hosts.count,
    weights: () => {
      const names = new Set(selections.map(({ host }) => host));
      return Array.from(names, (name) => weightOf(hosts, ranking, ranking.cell.view.hosts.slotOf(name)));
    },
  };
}

function weightOf(hosts: HostClass, ranking: CellRanking, root: number): HostWeight {
  const { cell } = ranking;
  return {
    cell: cell.name,
    host: cell.view.hosts.nameOf(root) ?? "",
    weight: ranking.weightOf(root),
    parts: hosts.partsOf(ranking, root),
  };
}

function standbysOf(ranked: RankedHosts, ranking: CellRanking, root: number, options: ChoiceOptions): Selection[] {
  const { cell, request } = ranking;
  options.watch?.enter("alternates");
  const alternates = chooseAlternates(ranked.standby(ranking), {
    most: options.alternates,
    seed: options.seed,
    taken: new Set([root, ...rootsOf(cell, options.excludedHosts?.get(cell.name))]),
    // It is called for many hosts, so it is left out when the chosen host is in no failure domain.
    ...(failureDomainOf(cell.facts, root) !== undefined && {
      domainOf: (slot: number) => failureDomainOf(cell.facts, slot),
    }),
  });
  return alternates.flatMap(({ root, ways }) => ways.map((way) => selectionOf(request, root, way)));
}

function noneOf(
  hosts: HostClass,
  hostRequest: HostRequest,
  bound: CellFilters,
  asked: { readonly excludedHosts: ChoiceOptions["excludedHosts"] | undefined; readonly search: SearchBudget },
) {
  const funnels = hosts.rankings.map(({ cell, rejected }, index) => {
    const ask = { hostRequest, bound: bound.of(index), excludedHosts: asked.excludedHosts?.get(cell.name) ?? NO_HOSTS };
    return examineCell(cell, ask, asked.search, rejected).funnel;
  });
  const { trees, steps } = sumFunnels(funnels);
  return { kind: "none", refusals: refusalsOf({ steps }), trees, funnels } as const;
}
