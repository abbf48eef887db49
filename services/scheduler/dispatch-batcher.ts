import type { Dispatch, DispatchOutcome, DispatchStore } from "../../core/cell/cell-store.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";

/** Dispatches to one cell that come together, as one transaction. */
export type DispatchBatcher = Pick<Batcher<Dispatch, DispatchOutcome>, "submit">;

/** Two batches are out at a time: the next one fills while the first is written. */
export function createDispatchBatcher(store: Pick<DispatchStore, "dispatch">, maxItems: number): DispatchBatcher {
  return new Batcher({
    run: (dispatches) => store.dispatch(dispatches),
    maxItems,
    concurrency: 2,
    spacingMs: COMMIT_SPACING_MS,
  });
}
