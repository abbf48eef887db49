import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";

/**
 * Creates a batcher for writes that have no answer and are not urgent. Single calls that are made at about the same time go as one batch.
 */
export function writeBatcher<Write>(
  write: (batch: readonly Write[]) => Promise<unknown>,
  maxItems: number,
): Batcher<Write, void> {
  return new Batcher({
    run: async (batch) => {
      await write(batch);
      return batch.map((): void => undefined);
    },
    maxItems,
    spacingMs: COMMIT_SPACING_MS,
  });
}
