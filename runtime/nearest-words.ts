/** The most words that are returned. */
const NEAREST_MAX = 3;

/**
 * The known words, which are in lower case, that somebody who typed `typed` may have meant, the most similar first: those within a third of its letters in changes, and those that
 * begin with it, in upper or lower case. Each word is returned once. Cost: the product of the lengths of `typed` and of all known words.
 */
export function nearestWords(typed: string, known: readonly string[]): readonly string[] {
  const word = typed.toLowerCase();
  const changesMax = Math.max(1, Math.floor(word.length / 3));
  return [...new Set(known)]
    .map((one) => ({ one, changes: one.startsWith(word) && word.length > 1 ? 0 : changesBetween(word, one) }))
    .filter(({ changes }) => changes <= changesMax)
    .sort((a, b) => a.changes - b.changes)
    .slice(0, NEAREST_MAX)
    .map(({ one }) => one);
}

/** The number of letters that have to be added, removed, replaced or swapped with their neighbour (optimal string alignment). */
export function changesBetween(a: string, b: string): number {
  let before: readonly number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwap = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      next[column] = Math.min(
        last[column]! + 1,
        next[column - 1]! + 1,
        last[column - 1]! + (isSame ? 0 : 1),
        isSwap && row > 1 && column > 1 ? before[column - 2]! + 1 : Number.POSITIVE_INFINITY,
      );
    }
    before = last;
    last = next;
  }
  return last[b.length]!;
}
