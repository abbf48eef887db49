import type { ResourceClass, Trait } from "../ledger/ids.ts";
import type { LedgerView } from "../ledger/view.ts";
import type { CandidateQuery } from "./candidate-query.ts";
import type { CandidateOutcome, FoundCandidate, FoundCandidates } from "./found-candidates.ts";
import { PlacementSearch, type PlacementSearchOptions } from "./search-candidates.ts";

export interface CellsSearchOptions extends PlacementSearchOptions {
  /** Most candidates of one answer; -1: as many as there are. Upstream's `max_allocation_candidates`. */
  readonly candidatesMax: number;
  /** Most providers that one search tries; the answer says when it was reached. */
  readonly stepsMax: number;
}

/** One cell's view. */
interface ViewedCell {
  readonly view: LedgerView;
}

/**
 * Answers a Placement query from the cells' views as they are now, as a union: the cells take turns, so that a limit favours none of them.
 * `present` makes of the candidates what the caller wants of them.
 */
export function searchCells<Presented>(
  cells: readonly ViewedCell[],
  query: CandidateQuery,
  options: CellsSearchOptions,
  present: (found: FoundCandidates) => Presented,
): CandidateOutcome<Presented> {
  const unknown = unknownNames(cells, query);
  if (unknown !== null) return unknown;
  const search = new CellsSearch(cells, query, options);
  return { kind: "found", presented: present(search), boundReached: search.boundReached };
}

/** The names are the same in all cells; while one is being added, it is enough that one cell has it. */
function unknownNames(cells: readonly ViewedCell[], query: CandidateQuery): CandidateOutcome<never> | null {
  const isKnownClass = (name: ResourceClass): boolean => cells.some(({ view }) => view.names.classes.has(name));
  for (const group of query.groups) {
    for (const resourceClass of group.resources.keys()) {
      if (!isKnownClass(resourceClass)) return { kind: "unknown-class", resourceClass };
    }
  }
  const isKnownTrait = (name: Trait): boolean => cells.some(({ view }) => view.names.traits.has(name));
  const traits = [query.rootTraits, ...query.groups].flatMap((rules) => [...rules.required.flat(), ...rules.forbidden]);
  const unknown = [...new Set(traits.filter((name) => !isKnownTrait(name)))].sort();
  return unknown.length > 0 ? { kind: "unknown-traits", traits: unknown } : null;
}

/** The cells take turns, until there are as many candidates as were asked for, or no more. */
class CellsSearch implements FoundCandidates {
  readonly #bound: { stepsLeft: number };
  readonly #cells: readonly { readonly view: LedgerView; readonly search: PlacementSearch }[];
  readonly #open: PlacementSearch[];
  #turn = 0;
  #left: number;

  constructor(cells: readonly ViewedCell[], query: CandidateQuery, options: CellsSearchOptions) {
    this.#bound = { stepsLeft: options.stepsMax };
    const settable = options.candidatesMax < 0 ? Number.POSITIVE_INFINITY : options.candidatesMax;
    this.#left = Math.min(query.limit ?? Number.POSITIVE_INFINITY, settable);
    this.#cells = cells.map(({ view }) => ({ view, search: new PlacementSearch(view, query, this.#bound, options) }));
    this.#open = this.#cells.map(({ search }) => search);
  }

  next(): FoundCandidate | null {
    while (this.#left > 0 && this.#open.length > 0) {
      if (this.#turn >= this.#open.length) this.#turn = 0;
      const found = this.#open[this.#turn]!.next();
      if (found === null) {
        this.#open.splice(this.#turn, 1);
        continue;
      }
      this.#turn += 1;
      this.#left -= 1;
      return found;
    }
    return null;
  }

  providers() {
    return this.#cells.map(({ view, search }) => ({ view, slots: search.providers() }));
  }

  get boundReached(): boolean {
    return this.#bound.stepsLeft === 0;
  }
}
