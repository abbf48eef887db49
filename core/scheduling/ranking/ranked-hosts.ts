import type { AllocationRequest } from "../../../proto/gen/berth/shared.ts";
import type { SearchBudget } from "../../candidates/search-budget.ts";
import type { StandbyHosts } from "../choose-alternates.ts";
import { type BoundFilter, refusedBy } from "../filters/host-filters.ts";
import type { CellRanking } from "./cell-ranking.ts";
import { headroomOf } from "./headroom.ts";
import type { HostClass } from "./host-class.ts";
import { isForNow, placeOnTree, waysOnTree } from "./place-on-tree.ts";
import { type RankedHost, RankedWalk } from "./ranked-walk.ts";

/** The conditions of one request for the hosts of its class. */
export interface RankedAsk {
  readonly seed: number;
  /** The filters whose verdicts are valid for this request only, by the cell's index in the class. */
  readonly filtersOf: (cell: number) => readonly BoundFilter[];
  /** The roots that must not be chosen, by the same index. */
  readonly excludedOf: (cell: number) => ReadonlySet<number>;
  /** The budget for searching hosts with several providers. */
  readonly search: SearchBudget;
}

/** A host and the way in which the request fits there. */
export interface PlacedHost {
  readonly ranking: CellRanking;
  readonly root: number;
  readonly way: AllocationRequest;
}

/**
 * The hosts of a class for one request, best first. The conditions of this request alone, and whether it fits on a tree of several
 * providers, are checked only for the hosts that are examined, until the budget of the search is closed.
 */
export class RankedHosts {
  readonly #class: HostClass;
  readonly #ask: RankedAsk;
  readonly #walk: RankedWalk;
  /** The host that was taken from the walk but not examined yet. */
  #ahead: RankedHost | null = null;
  readonly #rejected: { readonly cell: number; readonly root: number; readonly code: number }[] = [];
  #lookedAt = 0;

  constructor(hosts: HostClass, ask: RankedAsk) {
    this.#class = hosts;
    this.#ask = ask;
    this.#walk = new RankedWalk(hosts, ask.seed);
  }

  /** Number of hosts that were examined for whether the request fits there. */
  get lookedAt(): number {
    return this.#lookedAt;
  }

  /**
   * The next hosts of the ranking: at most `most` of them, whose weight is at most `tolerance` below the best one's. Whether they fit is
   * not checked yet.
   */
  takeBest(most: number, tolerance: number): RankedHost[] {
    const best: RankedHost[] = [];
    for (let host = this.#nextAllowed(); host; host = this.#nextAllowed()) {
      if (best.length === most || (best.length > 0 && host.weight < best[0]!.weight - tolerance)) {
        this.#ahead = host;
        break;
      }
      best.push(host);
    }
    return best;
  }

  /** The next host of the ranking on which the request fits, or null when there is none or the budget is closed. */
  takeNext(): PlacedHost | null {
    for (let host = this.#nextAllowed(); host; host = this.#nextAllowed()) {
      if (this.#ask.search.isClosed) break;
      const placed = this.place(host);
      if (placed) return placed;
    }
    return null;
  }

  /** Checks whether the request fits on a host. Null when it does not, or when the budget is closed. */
  place({ ranking, cell, root }: RankedHost): PlacedHost | null {
    const { search } = this.#ask;
    if (search.isClosed) return null;
    this.#lookedAt += 1;
    const way = placeOnTree(ranking.request, root, search);
    if (typeof way !== "number") return { ranking, root, way };
    if (!isForNow(way)) this.#rejected.push({ cell, root, code: way });
    return null;
  }

  /** The hosts of one cell in the form from which alternates are drawn. */
  standby(ranking: CellRanking): StandbyHosts {
    const index = this.#class.rankings.indexOf(ranking);
    const { sorted } = ranking;
    return {
      count: sorted.count,
      root: (at) => sorted.at(at),
      weight: (root) => ranking.weightOf(root),
      room: headroomOf(ranking.request),
      waysOn: (root, most) => {
        if (!this.#isAllowed(index, root)) return [];
        this.#lookedAt += 1;
        const { search } = this.#ask;
        // The host is already chosen, so the decision ends in this turn, within the rest of its budget.
        if (search.isClosed) search.beginSlice();
        return waysOnTree(ranking.request, root, most, search);
      },
    };
  }

  /** Ends the request's use of the ranking, which from now on leaves out the hosts that turned out not to fit. */
  settle(): void {
    for (const { cell, root, code } of this.#rejected) this.#class.leaveOut(cell, root, code);
  }

  #nextAllowed(): RankedHost | null {
    const ahead = this.#ahead;
    this.#ahead = null;
    if (ahead) return ahead;
    for (let host = this.#walk.next(); host; host = this.#walk.next()) {
      if (this.#isAllowed(host.cell, host.root)) return host;
    }
    return null;
  }

  #isAllowed(cell: number, root: number): boolean {
    if (this.#ask.excludedOf(cell).has(root)) return false;
    const filters = this.#ask.filtersOf(cell);
    if (filters.length === 0) return true;
    const host = this.#class.rankings[cell]!.cell.facts?.at(root);
    return !host || refusedBy(filters, host) === null;
  }
}
