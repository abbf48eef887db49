import type { LedgerView } from "../../../core/ledger/view.ts";
import type { ViewSource } from "../../../core/ledger/view-source.ts";
import type { CandidateQuery } from "../../../core/placement/candidate-query.ts";
import type { CandidateOutcome, FoundCandidates } from "../../../core/placement/found-candidates.ts";
import { type CellsSearchOptions, searchCells } from "../../../core/placement/search-cells.ts";

/** Where candidates come from: the ledger views of the cells. */
export interface CandidateSource {
  /**
   * Strict: the answer is of a state that shows every write acknowledged before the call; with `staleMs` at least every
   * one acknowledged so many milliseconds before it. `present` makes of the candidates what the caller wants of them.
   */
  candidates<Presented>(
    query: CandidateQuery,
    staleMs: number,
    present: (found: FoundCandidates) => Presented,
  ): Promise<CandidateOutcome<Presented>>;
}

/** One cell's view, and how fresh it is. */
export interface SearchedCell {
  readonly view: LedgerView;
  readonly source: Pick<ViewSource, "waitUntilSeen">;
}

export interface ViewCandidatesOptions extends CellsSearchOptions {
  /** How long a search waits for a view to show what was written before it. */
  readonly freshnessDeadlineMs: number;
}

/** Answers Placement queries from the cells' views, once all of them are as fresh as the caller wants. */
export function createViewCandidates(
  cells: () => readonly SearchedCell[],
  options: ViewCandidatesOptions,
): CandidateSource {
  return {
    async candidates<Presented>(
      query: CandidateQuery,
      staleMs: number,
      present: (found: FoundCandidates) => Presented,
    ): Promise<CandidateOutcome<Presented>> {
      const searched = cells();
      await Promise.all(searched.map((cell) => cell.source.waitUntilSeen(options.freshnessDeadlineMs, staleMs)));
      return searchCells(searched, query, options, present);
    },
  };
}
