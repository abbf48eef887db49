/** Percentiles of `count` durations, in milliseconds. */
export interface Percentiles {
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Computed by the nearest rank, so that each is a time that occurred; null when there are no times. */
export function percentilesOf(times: readonly number[]): Percentiles | null {
  if (times.length === 0) return null;
  const sorted = [...times].sort((a, b) => a - b);
  const rank = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
  return { count: sorted.length, p50: rank(0.5), p90: rank(0.9), p99: rank(0.99), max: rank(1) };
}
