import { ViewError } from "../../../core/stores/cell/view-source.ts";
import { StoreError } from "../../../core/stores/store-error.ts";
import { TokenRefused } from "../identity/token-refused.ts";
import { ERROR_CODES, PlacementError, placementConflict } from "./placement-error.ts";

const LATER = { "retry-after": "1" };

/**
 * Returns the refusal for a failure that is neither the client's fault nor a bug: 503 while a cell's database or its view is unavailable,
 * and the refusal of a token. Two kinds of bug, recognised by their SQLSTATE, also refuse only this request: a value that the database
 * cannot store (class 22), and a constraint that a concurrent write made it violate (class 23). Returns null for any other bug.
 */
export function refusalOf(error: unknown): PlacementError | null {
  if (error instanceof ViewError) {
    const why = `The view of cell ${error.cell} does not show its latest writes yet; try again.`;
    return new PlacementError(503, why, { headers: LATER });
  }
  if (error instanceof TokenRefused) return new PlacementError(error.status, error.message, { headers: error.headers });
  if (!(error instanceof StoreError)) return null;
  if (error.code === "unavailable") {
    const why = "The ledger's database does not answer now. A write may or may not have happened; try again.";
    return new PlacementError(503, why, { headers: LATER });
  }
  const state = (error.cause as { readonly code?: unknown } | undefined)?.code;
  if (typeof state !== "string") return null;
  if (state.startsWith("22"))
    return new PlacementError(400, "The request contains a value that the ledger cannot store.");
  if (state.startsWith("23"))
    return placementConflict(
      "Another request changed the same data at the same time; try again.",
      ERROR_CODES.concurrentUpdate,
    );
  return null;
}
