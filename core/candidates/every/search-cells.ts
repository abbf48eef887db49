import type { ResourceClass, Trait } from "../../ledger/ids.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import { type PlacementCandidateRequest, requiredRules } from "../request.ts";
import type { CandidateOutcome, FoundCandidate, FoundCandidates } from "./found-candidates.ts";
import { PlacementSearch, type PlacementSearchOptions } from "./placement-search.ts";

export interface CellsSearchOptions extends PlacementSearchOptions {
  /** Maximum number of candidates of one answer, or -1 for no limit. Upstream's `max_allocation_candidates`. */
  readonly candidatesMax: number;
  /** Maximum number of providers that one search tries. The answer says when it was reached. */
  readonly stepsMax: number;
}

interface ViewedCell {
  readonly view: LedgerView;
}

/**
 * Answers a Placement request from the current views of all cells, as a union. The cells alternate, so that a limit favours none of them.
 * `present` turns the candidates into the caller's form.
 */
export function searchCells<Presented>(
  cells: readonly ViewedCell[],
  request: PlacementCandidateRequest,
  options: CellsSearchOptions,
  present: (found: FoundCandidates) => Presented,
): CandidateOutcome<Presented> {
  const unknown = unknownNames(cells, request);
  if (unknown !== null) return unknown;
  const search = new CellsSearch(cells, request, options);
  return { kind: "found", presented: present(search), boundReached: search.boundReached };
}

/** Finds names that no cell knows. All cells have the same names, but while a name is being added it is enough that one cell has it. */
function unknownNames(
  cells: readonly ViewedCell[],
  request: PlacementCandidateRequest,
): CandidateOutcome<never> | null {
  const isKnownClass = (name: ResourceClass): boolean => cells.some(({ view }) => view.names.classes.has(name));
  for (const group of request.groups) {
    for (const resourceClass of group.resources.keys()) {
      if (!isKnownClass(resourceClass)) return { kind: "unknown-class", resourceClass };
    }
  }
  const isKnownTrait = (name: Trait): boolean => cells.some(({ view }) => view.names.traits.has(name));
  const { rootRules, groups } = request;
  const traits = [
    ...(rootRules?.requiredTraits ?? []),
    ...(rootRules?.forbiddenTraits ?? []),
    ...groups.flatMap((group) => [...requiredRules(group).flat(), ...group.forbiddenTraits]),
  ];
  const unknown = [...new Set(traits.filter((name) => !isKnownTrait(name)))].sort();
  return unknown.length > 0 ? { kind: "unknown-traits", traits: unknown } : null;
}

/** Takes one candidate of each cell in rotation, until there are as many as requested or no cell has more. */
class CellsSearch implements FoundCandidates {
  readonly #bound: { stepsLeft: number };
  readonly #cells: readonly { readonly view: LedgerView; readonly search: PlacementSearch }[];
  readonly #open: PlacementSearch[];
  #turn = 0;
  #left: number;

  constructor(cells: readonly ViewedCell[], request: PlacementCandidateRequest, options: CellsSearchOptions) {
    this.#bound = { stepsLeft: options.stepsMax };
    const settable = options.candidatesMax < 0 ? Number.POSITIVE_INFINITY : options.candidatesMax;
    this.#left = Math.min(request.limit ?? Number.POSITIVE_INFINITY, settable);
    this.#cells = cells.map(({ view }) => ({ view, search: new PlacementSearch(view, request, this.#bound, options) }));
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
