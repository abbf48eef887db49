import { StoreError } from "../../../adapters/postgres/store-error.ts";
import { ViewError } from "../../../core/ledger/view-source.ts";
import { TokenRefused } from "../identity/token-refused.ts";
import { ERROR_CODES, PlacementError, placementConflict } from "./placement-error.ts";

const LATER = { "retry-after": "1" };

/**
 * What a client is told of a failure that is not its fault and not a bug: 503 while a cell's database or the view of it is
 * away, and what becomes of a token that Keystone does not know. By their SQLSTATE two kinds of bug become refusals of this one request, too: a value that the database cannot keep
 * (class 22), and a rule that another write has come to break meanwhile (class 23). Null: a bug.
 */
export function refusalOf(error: unknown): PlacementError | null {
  if (error instanceof ViewError) {
    const why = `The view of cell ${error.cell} does not show its latest writes yet; try again.`;
    return new PlacementError(503, why, { headers: LATER });
  }
  if (error instanceof TokenRefused) return new PlacementError(error.status, error.message, { headers: error.headers });
  if (!(error instanceof StoreError)) return null;
  if (error.code === "unavailable") {
    const why = "The ledger's database cannot be asked now. A write may or may not have happened; try again.";
    return new PlacementError(503, why, { headers: LATER });
  }
  const state = (error.cause as { readonly code?: unknown } | undefined)?.code;
  if (typeof state !== "string") return null;
  if (state.startsWith("22")) return new PlacementError(400, "The request holds a value that the ledger cannot keep.");
  if (state.startsWith("23"))
    return placementConflict(
      "Another request changed the same at the same time; try again.",
      ERROR_CODES.concurrentUpdate,
    );
  return null;
}
