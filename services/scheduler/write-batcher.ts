import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";

/** Writes that have no answer and that nobody is in a hurry for: single calls that come together as one batch. */
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
