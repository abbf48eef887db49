import { SearchBudget } from "../../core/candidates/search-budget.ts";
import type { AllocationItem } from "../../core/ledger/model.ts";
import type { LedgerView } from "../../core/ledger/view.ts";
import type { ChoiceOptions, HostChoice, HostChooser, PausedChoice } from "../../core/scheduling/choose-hosts.ts";
import { examineCells } from "../../core/scheduling/explain/explain-request.ts";
import { type Miss, nearestMisses } from "../../core/scheduling/explain/nearest-misses.ts";
import type { HostFilter } from "../../core/scheduling/filters/host-filter.ts";
import { HardShapes } from "../../core/scheduling/hard-shapes.ts";
import { hostRules } from "../../core/scheduling/host-rules.ts";
import { pinQuery } from "../../core/scheduling/pin-query.ts";
import type { PlacementQuery } from "../../core/scheduling/placement-query.ts";
import type { SchedulingSettings } from "../../core/scheduling/scheduling-settings.ts";
import { seedOf } from "../../core/scheduling/seeded-random.ts";
import type { StageWatch } from "../../core/scheduling/stage-watch.ts";
import type { WeigherSet } from "../../core/scheduling/weighers/weigher-set.ts";
import type { Selection, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { CellLink } from "./cell-link.ts";
import type { SchedulerEvents } from "./events.ts";
import type { GroupPicks } from "./group-picks.ts";
import type { SchedulerSettings } from "./settings.ts";
import { StageTimer } from "./time-stages.ts";

/** Hosts that are named as nearly fit. */
const MISSES_MAX = 5;

/** What is known of one request while it is being placed. */
export interface PlacingState {
  readonly serverUuid: string;
  readonly spec: ServerSpec;
  /** Hosts by cell that were chosen for others of its request; null: it has no others. */
  readonly company: { readonly hosts: HostsByCell } | null;
  /** Nothing was learnt since the views were waited for: what this scheduler only remembers counts no more. */
  readonly fresh: boolean;
  query: PlacementQuery;
  /** The cell that it is assigned to as far as is known; null: none yet. */
  at: string | null;
  /** Cells where it can never be dispatched any more. */
  readonly shut: Set<string>;
  /** Hosts by cell that had no room after all. */
  readonly tried: Map<string, Set<string>>;
  /** The cell, and the hosts if known, where the other servers of its affinity group are: it goes there or nowhere. Null: not known. */
  pinned: { readonly cell: string; readonly hosts: readonly string[] } | null;
}

/** Chooses hosts for one request among the cells that it may go to now. */
export class RequestChooser {
  readonly #chooser: HostChooser;
  readonly #weighers: WeigherSet;
  readonly #ownFilters: readonly HostFilter[];
  readonly #onArrival: (query: PlacementQuery, view: LedgerView) => void;
  readonly #live: { readonly current: SchedulingSettings };
  readonly #settings: SchedulerSettings;
  readonly #clock: Clock;
  readonly #events: SchedulerEvents;
  readonly #groupPicks: GroupPicks;
  readonly #hardShapes = new HardShapes();
  readonly #searches = new WeakMap<PlacingState, SearchBudget>();
  /** Searches that were given up, and counted. */
  readonly #toldOf = new WeakSet<SearchBudget>();

  constructor(options: {
    readonly chooser: HostChooser;
    readonly weighers: WeigherSet;
    /** Asked after those that operators have enabled. */
    readonly ownFilters: readonly HostFilter[];
    /** A request comes to be placed: for those who learn what usually comes. */
    readonly onArrival: (query: PlacementQuery, view: LedgerView) => void;
    readonly live: { readonly current: SchedulingSettings };
    readonly settings: SchedulerSettings;
    readonly clock: Clock;
    readonly events: SchedulerEvents;
    readonly groupPicks: GroupPicks;
  }) {
    this.#chooser = options.chooser;
    this.#weighers = options.weighers;
    this.#ownFilters = options.ownFilters;
    this.#onArrival = options.onArrival;
    this.#live = options.live;
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#events = options.events;
    this.#groupPicks = options.groupPicks;
  }

  /**
   * In the cell that it is assigned to, if there is a host; else in any other that it was not shut out of. `paused`: the search has used
   * up its turn, and is to be asked to go on after others had theirs.
   */
  choose(state: PlacingState, links: readonly CellLink[]): HostChoice | PausedChoice {
    const timer = new StageTimer(this.#clock);
    const limits = this.#limitsOf(state);
    const { pinned } = limits;
    const isNew = state.at === null && state.tried.size === 0 && !state.fresh && this.#searchOf(state).steps === 0;
    if (isNew && links[0]) this.#onArrival(state.query, links[0].view);
    const open = links.filter(
      (link) => link.isOpen && !state.shut.has(link.name) && (pinned === null || pinned.cell === link.name),
    );
    const home = open.filter((link) => link.name === state.at);
    const atHome = home.length > 0 ? this.#among(home, state, { ...limits, watch: timer }) : null;
    const others = home.length > 0 ? open.filter((link) => link !== home[0]) : open;
    const isDecided = atHome !== null && atHome.kind !== "none";
    const choice = isDecided ? atHome : this.#among(others, state, { ...limits, watch: timer });
    const lookedAt = choice.lookedAt + (atHome && choice !== atHome ? atHome.lookedAt : 0);
    this.#tell(state, choice, { tookMs: timer.end(), stagesMs: timer.stagesMs, lookedAt });
    if (choice.kind !== "none" || atHome?.kind !== "none") return choice;
    const refusals = [...choice.refusals, ...atHome.refusals];
    const funnels = [...atHome.funnels, ...choice.funnels];
    return { kind: "none", refusals, trees: choice.trees + atHome.trees, funnels, lookedAt };
  }

  /**
   * For a server that stays in its cell. `released` counts as free while hosts are chosen: what it holds, where it may stay on its
   * host.
   */
  chooseWithin(state: PlacingState, link: CellLink, released: readonly AllocationItem[]): HostChoice | PausedChoice {
    const timer = new StageTimer(this.#clock);
    const name = `released by ${state.serverUuid}`;
    const freed = released.map((item) => ({ ...item, amount: -item.amount }));
    if (freed.length > 0) link.view.hold(name, freed);
    try {
      const choice = this.#among([link], state, { pinned: null, excluded: state.tried, watch: timer, isMove: true });
      this.#tell(state, choice, { tookMs: timer.end(), stagesMs: timer.stagesMs, lookedAt: choice.lookedAt });
      return choice;
    } finally {
      if (freed.length > 0) link.view.letGo(name);
    }
  }

  /** The alternates of a server with company, none of them chosen for another one of it. */
  alternatesOf(state: PlacingState, link: CellLink, host: string): readonly Selection[] {
    const { excluded } = this.#limitsOf(state);
    const limits = { pinned: null, excluded: unionOf(excluded, state.company?.hosts ?? NO_HOSTS) };
    return this.#chooser.alternatesOf({ cell: link.name, host }, state.query, [link], this.#optionsFor(state, limits));
  }

  /** The hosts that nearly fit, of those that a refusal has just looked at. */
  nearestTo(state: PlacingState, links: readonly CellLink[]): readonly Miss[] {
    const limits = this.#limitsOf(state);
    const open = links.filter((link) => link.isOpen && !state.shut.has(link.name));
    const examined = examineCells(state.query, open, this.#optionsFor(state, limits));
    return nearestMisses(examined, MISSES_MAX);
  }

  /** What it knows of its group by refusals, and by what this scheduler picked for the others lately. */
  #limitsOf(state: PlacingState): ChoiceLimits {
    if (state.fresh) return { pinned: state.pinned, excluded: state.tried };
    const advice = this.#groupPicks.adviceFor(state.spec);
    return { pinned: state.pinned ?? advice.pinned, excluded: unionOf(state.tried, advice.full) };
  }

  #among(links: readonly CellLink[], state: PlacingState, limits: ChoiceLimits): HostChoice | PausedChoice {
    const options = this.#optionsFor(state, limits);
    return this.#chooser.chooseSlice(queryFor(state.query, limits, links), links, options, this.#searchOf(state));
  }

  #tell(
    state: PlacingState,
    { kind }: HostChoice | PausedChoice,
    effort: Omit<Parameters<SchedulerEvents["decided"]>[0], "outcome">,
  ): void {
    const search = this.#searchOf(state);
    if (kind === "paused") {
      search.beginSlice();
      return;
    }
    this.#events.decided({ outcome: kind, ...effort });
    if (this.#toldOf.has(search)) return;
    this.#hardShapes.learn(state.query, search);
    if (search.spentBy === null) return;
    this.#toldOf.add(search);
    this.#events.searchGivenUp(state.serverUuid, search.spentBy, search.steps);
  }

  /** One for all that is searched for a request, however often it is chosen for. */
  #searchOf(state: PlacingState): SearchBudget {
    let search = this.#searches.get(state);
    if (search === undefined) {
      search = new SearchBudget(this.#hardShapes.limitsFor(state.query), () => this.#clock.monotonic());
      this.#searches.set(state, search);
    }
    return search;
  }

  #optionsFor(state: PlacingState, { excluded, watch, isMove = false }: ChoiceLimits): ChoiceOptions {
    const { attemptsMax } = this.#settings;
    return {
      ...hostRules(this.#live.current, this.#weighers, this.#ownFilters),
      seed: seedOf(state.serverUuid),
      alternates: attemptsMax - 1 + (isMove || attemptsMax === 1 ? 0 : SPARE_ALTERNATES),
      excludedHosts: excluded,
      spec: state.spec,
      search: this.#searchOf(state),
      ...(watch && { watch }),
    };
  }
}

type HostsByCell = ReadonlyMap<string, ReadonlySet<string>>;

interface ChoiceLimits {
  readonly pinned: PlacingState["pinned"];
  readonly excluded: HostsByCell;
  readonly watch?: StageWatch;
  readonly isMove?: boolean;
}

const NO_HOSTS: HostsByCell = new Map();

/**
 * Alternates of a build beyond those that may be called: a cell passes over the ones that others have filled up meanwhile. A move has none:
 * when its list is used up the server is back where it was.
 */
const SPARE_ALTERNATES = 2;

function unionOf(some: HostsByCell, more: HostsByCell): HostsByCell {
  if (more.size === 0) return some;
  const union = new Map(some);
  for (const [cell, hosts] of more) union.set(cell, new Set([...(some.get(cell) ?? []), ...hosts]));
  return union;
}

/** The query, narrowed to the host that the server is pinned to. */
function queryFor(
  query: PlacementQuery,
  { pinned, excluded }: ChoiceLimits,
  links: readonly CellLink[],
): PlacementQuery {
  const link = pinned && links.find(({ name }) => name === pinned.cell);
  if (!link) return query;
  const spent = excluded.get(pinned.cell);
  const host = pinned.hosts.find((name) => !spent?.has(name)) ?? pinned.hosts[0];
  const root = host === undefined ? undefined : link.view.host(host)?.provider;
  return root === undefined ? query : pinQuery(query, root);
}
