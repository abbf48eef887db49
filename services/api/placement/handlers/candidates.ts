import type { PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import type { Answer, PlacementCall } from "../http.ts";
import { placementBadRequest } from "../placement-error.ts";
import { presentCandidates } from "../present-candidates.ts";
import { readCandidateRequest } from "../request-groups.ts";
import { listCandidatesSchemas as querySchema } from "../schemas/candidates.ts";
import { checkQuery } from "../validate.ts";
import type { CandidateSource } from "../view-candidates.ts";
import { unknownClass, unknownTraits } from "./known-names.ts";

const STALENESS_HEADER = "x-berth-staleness-ms";

/**
 * GET /allocation_candidates. Everything is read from the ledger view, including the known names. With the header `x-berth-staleness-ms:
 * N`, the answer shows at least everything that was acknowledged N milliseconds before, and a database is asked only when the view may be
 * older.
 */
export async function listCandidates(
  call: PlacementCall,
  _store: PlacementStore,
  source: CandidateSource,
): Promise<Answer> {
  checkQuery(call, querySchema);
  const request = readCandidateRequest(call);
  const present = presentCandidates.bind(null, call.version, request);
  const outcome = await source.candidates(request, acceptedStaleness(call), present);
  switch (outcome.kind) {
    case "unknown-class":
      throw unknownClass(outcome.resourceClass);
    case "unknown-traits":
      throw unknownTraits(outcome.traits);
    case "found":
      return {
        status: 200,
        bytes: outcome.presented.bytes(),
        sent: () => outcome.presented.release(),
        lastModifiedMs: Date.now(),
        boundReached: outcome.boundReached,
      };
    default:
      return outcome satisfies never;
  }
}

/** Milliseconds; 0 without the header. Throws 400. */
function acceptedStaleness(call: PlacementCall): number {
  const text = call.request.headers[STALENESS_HEADER];
  if (text === undefined) return 0;
  if (!/^\d{1,9}$/.test(text.trim()))
    throw placementBadRequest(
      `${STALENESS_HEADER} takes a whole number of milliseconds, below 1000000000. Got: ${text}`,
    );
  return Number(text);
}
