/** A law that does not hold: which, of what, where, and how that is known. */
export interface Violation {
  readonly law: 1 | 2 | 3 | 4 | 5;
  /** What is wrong, in words that stay the same from reading to reading. */
  readonly what: string;
  /** Cell, provider, host or server that it concerns. */
  readonly where: string;
  /** The figures or rows that show it. */
  readonly proof: string;
}

/**
 * Those of the later reading that the earlier one had too. What is in flight (a claim whose server row the other query did
 * not see yet, a guest about to be told) is gone by then; what is broken stays.
 */
export function persisting(earlier: readonly Violation[], later: readonly Violation[]): Violation[] {
  const known = new Set(earlier.map(keyOf));
  return later.filter((violation) => known.has(keyOf(violation)));
}

function keyOf(violation: Violation): string {
  return `${violation.law}\n${violation.what}\n${violation.where}`;
}
