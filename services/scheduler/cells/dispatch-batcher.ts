import type { Dispatch, DispatchOutcome, DispatchStore } from "../../../core/stores/cell/cell-store.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../runtime/batcher.ts";

/** Writes dispatches to one cell that are made at about the same time in one transaction. */
export type DispatchBatcher = Pick<Batcher<Dispatch, DispatchOutcome>, "submit">;

/** Creates a batcher that writes two batches at a time: the next batch fills while the previous one is written. */
export function createDispatchBatcher(store: Pick<DispatchStore, "dispatch">, maxItems: number): DispatchBatcher {
  return new Batcher({
    run: (dispatches) => store.dispatch(dispatches),
    maxItems,
    concurrency: 2,
    spacingMs: COMMIT_SPACING_MS,
  });
}
