import type { CandidateOutcome, FoundCandidates } from "../../../core/candidates/every/found-candidates.ts";
import { type CellsSearchOptions, searchCells } from "../../../core/candidates/every/search-cells.ts";
import type { PlacementCandidateRequest } from "../../../core/candidates/request.ts";
import type { LedgerView } from "../../../core/ledger/ledger-view.ts";
import type { ViewSource } from "../../../core/stores/cell/view-source.ts";

/** Finds allocation candidates in the ledger views of the cells. */
export interface CandidateSource {
  /**
   * Finds candidates. By default, the answer shows every write that was acknowledged before the call. With `staleMs`, it shows at least
   * those that were acknowledged that many milliseconds before the call. `present` turns the candidates into the caller's result.
   */
  candidates<Presented>(
    request: PlacementCandidateRequest,
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
  /** How long a search waits for a view to show earlier writes. */
  readonly freshnessDeadlineMs: number;
}

/** Answers Placement requests from the cells' views, once all of them are as fresh as the caller wants. */
export function createViewCandidates(
  cells: () => readonly SearchedCell[],
  options: ViewCandidatesOptions,
): CandidateSource {
  return {
    async candidates<Presented>(
      request: PlacementCandidateRequest,
      staleMs: number,
      present: (found: FoundCandidates) => Presented,
    ): Promise<CandidateOutcome<Presented>> {
      const searched = cells();
      await Promise.all(searched.map((cell) => cell.source.waitUntilSeen(options.freshnessDeadlineMs, staleMs)));
      return searchCells(searched, request, options, present);
    },
  };
}
