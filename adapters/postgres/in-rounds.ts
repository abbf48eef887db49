/**
 * Runs a batch whose SQL takes no key twice: elements of one key go in rounds, in their order, each round a transaction of
 * its own. Nearly always one round. Answers in the order of the elements.
 */
export async function inRounds<Item, Result>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
): Promise<readonly Result[]> {
  if (items.length === 0) return [];
  if (new Set(items.map(keyOf)).size === items.length) return run(items);
  const seen = new Map<string, number>();
  const rounds: number[][] = [];
  items.forEach((item, index) => {
    const key = keyOf(item);
    const round = seen.get(key) ?? 0;
    seen.set(key, round + 1);
    const indexes = rounds[round];
    if (indexes === undefined) rounds.push([index]);
    else indexes.push(index);
  });
  const results: Result[] = [];
  for (const indexes of rounds) {
    const answers = await run(indexes.map((index) => items[index] as Item));
    answers.forEach((answer, at) => {
      results[indexes[at] as number] = answer;
    });
  }
  return results;
}
