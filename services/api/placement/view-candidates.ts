import type { CandidateOutcome, FoundCandidates } from "../../../core/candidates/every/found-candidates.ts";
import { type CellsSearchOptions, searchCells } from "../../../core/candidates/every/search-cells.ts";
import type { PlacementCandidateRequest } from "../../../core/candidates/request.ts";
import type { LedgerView } from "../../../core/ledger/ledger-view.ts";
import type { ViewSource } from "../../../core/stores/cell/view-source.ts";

/** What a search gives its caller, who may give it back. */
export interface Released {
  release(): void;
}

/** Finds allocation candidates in the ledger views of the cells. */
export interface CandidateSource {
  /**
   * Finds candidates. By default, the answer shows every write that was acknowledged before the call. With `staleMs`, it shows at least
   * those that were acknowledged that many milliseconds before the call. `present` turns the candidates into the caller's result. It may be
   * called twice: the first result is released when the views turn out to have been too old for it.
   */
  candidates<Presented extends Released>(
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

/** After a search that was too early, so many wait first: where others write all the time, each would be made twice. */
const PATIENT_SEARCHES = 4;

/**
 * Answers Placement requests from the cells' views, once all of them are as fresh as the caller wants.
 *
 * A caller that comes alone gets its answer from a search that runs while the databases are asked how far they are, since a lone caller
 * would only wait for the two after each other. If a view had not shown everything by then, the search is repeated.
 */
export function createViewCandidates(
  cells: () => readonly SearchedCell[],
  options: ViewCandidatesOptions,
): CandidateSource {
  let underWay = 0;
  let patientSearches = 0;
  return {
    async candidates<Presented extends Released>(
      request: PlacementCandidateRequest,
      staleMs: number,
      present: (found: FoundCandidates) => Presented,
    ): Promise<CandidateOutcome<Presented>> {
      const searched = cells();
      const search = () => searchCells(searched, request, options, present);
      const isEager = underWay === 0 && patientSearches === 0;
      patientSearches = Math.max(0, patientSearches - 1);
      underWay += 1;
      try {
        const seen = Promise.all(
          searched.map((cell) => cell.source.waitUntilSeen(options.freshnessDeadlineMs, staleMs)),
        );
        if (!isEager) {
          await seen;
          return search();
        }
        // A rejection during the search is heard below.
        seen.catch(() => undefined);
        const early = search();
        let isFresh = false;
        try {
          isFresh = (await seen).every(Boolean);
          if (isFresh) return early;
        } finally {
          if (!isFresh) {
            patientSearches = PATIENT_SEARCHES;
            if (early.kind === "found") early.presented.release();
          }
        }
        return search();
      } finally {
        underWay -= 1;
      }
    },
  };
}
