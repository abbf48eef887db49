/**
 * Calls `work` for each item, for at most `atATime` of them at once, in their order. Resolves with the results in the order of the items. After an
 * error no further call begins; rejects with it when the calls under way have ended.
 */
export async function forEachBounded<Item, Result>(
  items: readonly Item[],
  atATime: number,
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const left = items.entries();
  let failed = false;
  const workSome = async (): Promise<void> => {
    for (const [index, item] of left) {
      if (failed) return;
      try {
        results[index] = await work(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const settled = await Promise.allSettled(Array.from({ length: Math.min(atATime, items.length) }, workSome));
  for (const one of settled) if (one.status === "rejected") throw one.reason;
  return results;
}
