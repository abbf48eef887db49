import { SearchBudget } from "../../../core/candidates/search-budget.ts";
import type { LedgerView } from "../../../core/ledger/ledger-view.ts";
import type { AllocationItem } from "../../../core/ledger/model.ts";
import type { HostsByCell, Learnt } from "../../../core/placing/placing.ts";
import { examineCells } from "../../../core/scheduling/explain/explain-request.ts";
import { type Miss, nearestMisses } from "../../../core/scheduling/explain/nearest-misses.ts";
import type { HostFilter } from "../../../core/scheduling/filters/host-filter.ts";
import { HardShapes } from "../../../core/scheduling/hard-shapes.ts";
import type { ChoiceOptions, HostChoice, HostChooser, PausedChoice } from "../../../core/scheduling/host-chooser.ts";
import type { HostRequest } from "../../../core/scheduling/host-request.ts";
import { hostRules } from "../../../core/scheduling/host-rules.ts";
import { pinHostRequest } from "../../../core/scheduling/pin-host-request.ts";
import type { SchedulingSettings } from "../../../core/scheduling/scheduling-settings.ts";
import { seedOf } from "../../../core/scheduling/seeded-random.ts";
import type { StageWatch } from "../../../core/scheduling/stage-watch.ts";
import type { WeigherSet } from "../../../core/scheduling/weighers/weigher-set.ts";
import type { Selection } from "../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { CellLink } from "../cells/cell-link.ts";
import type { SchedulerEvents } from "../events.ts";
import type { SchedulerSettings } from "../settings.ts";
import { StageTimer } from "../stage-timer.ts";
import type { GroupPicks } from "./group-picks.ts";
import type { HostSearch } from "./host-search.ts";

/** Maximum number of hosts that are reported as nearly suitable. */
const MISSES_MAX = 5;

/** Chooses hosts for one request among the cells in which it may be placed now. */
export class RequestChooser {
  readonly #chooser: HostChooser;
  readonly #weighers: WeigherSet;
  readonly #ownFilters: readonly HostFilter[];
  readonly #onArrival: (hostRequest: HostRequest, view: LedgerView) => void;
  readonly #live: { readonly current: SchedulingSettings };
  readonly #settings: SchedulerSettings;
  readonly #clock: Clock;
  readonly #events: SchedulerEvents;
  readonly #groupPicks: GroupPicks;
  readonly #hardShapes = new HardShapes();

  constructor(options: {
    readonly chooser: HostChooser;
    readonly weighers: WeigherSet;
    /** Applied after the filters that operators have enabled. */
    readonly ownFilters: readonly HostFilter[];
    /** Called when a request is about to be placed, for code that learns which requests are typical. */
    readonly onArrival: (hostRequest: HostRequest, view: LedgerView) => void;
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
   * Chooses in the assigned cell if there is a host, otherwise in any other cell that is not closed to the server. `paused` means that the
   * search has used up its turn, and must be continued after other requests had theirs.
   */
  choose(search: HostSearch, learnt: Learnt, links: readonly CellLink[]): HostChoice | PausedChoice {
    const timer = new StageTimer(this.#clock);
    const limits = this.#limitsOf(search, learnt);
    const { pinned } = limits;
    const { at, shut } = learnt;
    const isNew = at === null && learnt.tried.size === 0 && !learnt.fresh && this.#budgetOf(search).steps === 0;
    if (isNew && links[0]) this.#onArrival(search.hostRequest, links[0].view);
    const open = links.filter(
      (link) => link.isOpen && !shut.has(link.name) && (pinned === null || pinned.cell === link.name),
    );
    const home = open.filter((link) => link.name === at);
    const atHome = home.length > 0 ? this.#among(home, search, { ...limits, watch: timer }) : null;
    const others = home.length > 0 ? open.filter((link) => link !== home[0]) : open;
    const isDecided = atHome !== null && atHome.kind !== "none";
    const choice = isDecided ? atHome : this.#among(others, search, { ...limits, watch: timer });
    const lookedAt = choice.lookedAt + (atHome && choice !== atHome ? atHome.lookedAt : 0);
    this.#tell(search, choice, { tookMs: timer.end(), stagesMs: timer.stagesMs, lookedAt });
    if (choice.kind !== "none" || atHome?.kind !== "none") return choice;
    const refusals = [...choice.refusals, ...atHome.refusals];
    const funnels = [...atHome.funnels, ...choice.funnels];
    return { kind: "none", refusals, trees: choice.trees + atHome.trees, funnels, lookedAt };
  }

  /**
   * Chooses for a server that stays in its cell. `released` counts as free while hosts are chosen. It is the server's own allocation, where
   * the server may stay on its host.
   */
  chooseWithin(
    search: HostSearch,
    { tried }: Pick<Learnt, "tried">,
    link: CellLink,
    released: readonly AllocationItem[],
  ): HostChoice | PausedChoice {
    const timer = new StageTimer(this.#clock);
    const name = `released by ${search.spec.uuid}`;
    const freed = released.map((item) => ({ ...item, amount: -item.amount }));
    if (freed.length > 0) link.view.reserve(name, freed);
    try {
      const choice = this.#among([link], search, { pinned: null, excluded: tried, watch: timer, isMove: true });
      this.#tell(search, choice, { tookMs: timer.end(), stagesMs: timer.stagesMs, lookedAt: choice.lookedAt });
      return choice;
    } finally {
      if (freed.length > 0) link.view.release(name);
    }
  }

  /**
   * The alternates of a server of a multi-create. Hosts that were chosen for other servers of the call come last, and are used only if
   * there are too few other hosts: if servers outnumber the hosts, a failed build could otherwise not be retried.
   */
  alternatesOf(search: HostSearch, learnt: Learnt, link: CellLink, host: string): readonly Selection[] {
    const { excluded } = this.#limitsOf(search, learnt);
    const among = (hosts: HostsByCell) => {
      const options = this.#optionsFor(search, { pinned: null, excluded: hosts });
      return this.#chooser.alternatesOf({ cell: link.name, host }, search.hostRequest, [link], options);
    };
    const apart = among(unionOf(excluded, search.chosenTogether));
    const known = new Set(apart.map((selection) => selection.host));
    const wanted = this.#alternatesMax(false);
    if (known.size >= wanted || search.chosenTogether.size === 0) return apart;
    const shared = among(excluded).filter((selection) => !known.has(selection.host));
    const added = new Set([...new Set(shared.map((selection) => selection.host))].slice(0, wanted - known.size));
    return [...apart, ...shared.filter((selection) => added.has(selection.host))];
  }

  /** The most nearly suitable hosts of those that a refusal has just examined. */
  nearestTo(search: HostSearch, learnt: Learnt, links: readonly CellLink[]): readonly Miss[] {
    const limits = this.#limitsOf(search, learnt);
    const open = links.filter((link) => link.isOpen && !learnt.shut.has(link.name));
    const examined = examineCells(search.hostRequest, open, this.#optionsFor(search, limits));
    return nearestMisses(examined, MISSES_MAX);
  }

  /**
   * The facts that refusals have reported about its group, and the hosts that this scheduler recently picked for the group's other servers.
   */
  #limitsOf({ spec }: HostSearch, { fresh, pinned, tried }: Learnt): ChoiceLimits {
    if (fresh) return { pinned, excluded: tried };
    const advice = this.#groupPicks.adviceFor(spec);
    return { pinned: pinned ?? advice.pinned, excluded: unionOf(tried, advice.full) };
  }

  #among(links: readonly CellLink[], search: HostSearch, limits: ChoiceLimits): HostChoice | PausedChoice {
    const options = this.#optionsFor(search, limits);
    return this.#chooser.chooseSlice(
      hostRequestFor(search.hostRequest, limits, links),
      links,
      options,
      this.#budgetOf(search),
    );
  }

  #tell(
    search: HostSearch,
    { kind }: HostChoice | PausedChoice,
    effort: Omit<Parameters<SchedulerEvents["decided"]>[0], "outcome">,
  ): void {
    const budget = this.#budgetOf(search);
    if (kind === "paused") {
      budget.beginSlice();
      return;
    }
    this.#events.decided({ outcome: kind, ...effort });
    if (search.isCounted) return;
    this.#hardShapes.learn(search.hostRequest, budget);
    if (budget.spentBy === null) return;
    search.isCounted = true;
    this.#events.searchGivenUp(search.spec.uuid, budget.spentBy, budget.steps);
  }

  #budgetOf(search: HostSearch): SearchBudget {
    search.budget ??= new SearchBudget(this.#hardShapes.limitsFor(search.hostRequest), () => this.#clock.monotonic());
    return search.budget;
  }

  #optionsFor(search: HostSearch, { excluded, watch, isMove = false }: ChoiceLimits): ChoiceOptions {
    return {
      ...hostRules(this.#live.current, this.#weighers, this.#ownFilters),
      seed: seedOf(search.spec.uuid),
      alternates: this.#alternatesMax(isMove),
      excludedHosts: excluded,
      spec: search.spec,
      search: this.#budgetOf(search),
      ...(watch && { watch }),
    };
  }

  #alternatesMax(isMove: boolean): number {
    const { attemptsMax } = this.#settings;
    return attemptsMax - 1 + (isMove || attemptsMax === 1 ? 0 : SPARE_ALTERNATES);
  }
}

interface ChoiceLimits {
  readonly pinned: Learnt["pinned"];
  readonly excluded: HostsByCell;
  readonly watch?: StageWatch;
  readonly isMove?: boolean;
}

/**
 * Alternates of a build beyond those that may be called, since a cell skips the ones that have filled up meanwhile. A move has none: when
 * its list is used up, the server goes back to its source.
 */
const SPARE_ALTERNATES = 2;

function unionOf(some: HostsByCell, more: HostsByCell): HostsByCell {
  if (more.size === 0) return some;
  const union = new Map(some);
  for (const [cell, hosts] of more) union.set(cell, new Set([...(some.get(cell) ?? []), ...hosts]));
  return union;
}

/** The host request, narrowed to the host that the server is pinned to. */
function hostRequestFor(
  hostRequest: HostRequest,
  { pinned, excluded }: ChoiceLimits,
  links: readonly CellLink[],
): HostRequest {
  const link = pinned && links.find(({ name }) => name === pinned.cell);
  if (!link) return hostRequest;
  const spent = excluded.get(pinned.cell);
  const host = pinned.hosts.find((name) => !spent?.has(name)) ?? pinned.hosts[0];
  const root = host === undefined ? undefined : link.view.host(host)?.provider;
  return root === undefined ? hostRequest : pinHostRequest(hostRequest, root);
}
