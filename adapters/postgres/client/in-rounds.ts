/**
 * Runs a batch whose SQL accepts no key twice. The list is cut before each element whose key is already in the same round, or that
 * `clashes` with an element of the round. Rounds run one after the other, each in its own transaction, so elements take effect in their
 * order. There is nearly always one round.
 */
export async function inRounds<Item, Result>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  clashes?: (item: Item, round: readonly Item[]) => boolean,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  let round: Item[] = [];
  let keys = new Set<string>();
  for (const item of items) {
    const key = keyOf(item);
    if (keys.has(key) || clashes?.(item, round)) {
      results.push(...(await run(round)));
      round = [];
      keys = new Set();
    }
    round.push(item);
    keys.add(key);
  }
  if (round.length > 0) results.push(...(await run(round)));
  return results;
}
