/** The first and the last number. */
export type NumberRange = readonly [first: number, last: number];

/**
 * All numbers that are in any of the ranges, ascending and each once. Cost: grows with the number of ranges and of different numbers, however often
 * a number is named: an image or a file may name the same ones in thousands of ranges.
 */
export function numbersInRanges(ranges: readonly NumberRange[]): readonly number[] {
  const numbers: number[] = [];
  let next = Number.NEGATIVE_INFINITY;
  for (const [first, last] of ranges.toSorted((one, other) => one[0] - other[0])) {
    for (next = Math.max(next, first); next <= last; next += 1) numbers.push(next);
  }
  return numbers;
}
