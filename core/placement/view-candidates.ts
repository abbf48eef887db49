import type { ResourceClass, Trait } from "../ledger/ids.ts";
import type { LedgerView } from "../ledger/view.ts";
import type { ViewSource } from "../ledger/view-source.ts";
import type {
  Candidate,
  CandidateAnswer,
  CandidateOutcome,
  CandidateQuery,
  CandidateSource,
} from "./candidate-query.ts";
import { CandidateSearch, type SearchOptions } from "./search-candidates.ts";

/** One cell's view, and how fresh it is. */
export interface SearchedCell {
  readonly view: LedgerView;
  readonly source: Pick<ViewSource, "waitUntilSeen">;
}

export interface ViewCandidatesOptions extends SearchOptions {
  /** Most candidates of one answer; -1: as many as there are. Upstream's `max_allocation_candidates`. */
  readonly candidatesMax: number;
  /** Most providers that one search tries; the answer says when it was reached. */
  readonly stepsMax: number;
  /** How long a search waits for a view to show what was written before it. */
  readonly freshnessDeadlineMs: number;
}

/** Answers Placement queries from the cells' views, as a union: the cells take turns, so that a limit favours none of them. */
export function createViewCandidates(
  cells: () => readonly SearchedCell[],
  options: ViewCandidatesOptions,
): CandidateSource {
  return {
    async candidates(query: CandidateQuery, staleMs: number): Promise<CandidateOutcome> {
      const searched = cells();
      await Promise.all(searched.map((cell) => cell.source.waitUntilSeen(options.freshnessDeadlineMs, staleMs)));
      return unknownNames(searched, query) ?? { kind: "found", ...searchCells(searched, query, options) };
    },
  };
}

/** The names are the same in all cells; while one is being added, it is enough that one cell has it. */
function unknownNames(cells: readonly SearchedCell[], query: CandidateQuery): CandidateOutcome | null {
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

function searchCells(
  cells: readonly SearchedCell[],
  query: CandidateQuery,
  options: ViewCandidatesOptions,
): CandidateAnswer {
  const bound = { stepsLeft: options.stepsMax };
  const limits = [query.limit, options.candidatesMax < 0 ? undefined : options.candidatesMax];
  const limit = Math.min(...limits.map((one) => one ?? Number.POSITIVE_INFINITY));
  const searches = cells.map((cell) => new CandidateSearch(cell.view, query, bound, options));
  const candidates: Candidate[] = [];
  for (let open = searches; open.length > 0 && candidates.length < limit; ) {
    open = open.filter((search) => {
      const candidate = candidates.length < limit ? search.next() : null;
      if (candidate !== null) candidates.push(candidate);
      return candidate !== null;
    });
  }
  return {
    candidates,
    summaries: searches.flatMap((search) => search.summaries()),
    boundReached: bound.stepsLeft === 0,
  };
}
