/** Number of rounds of a measurement; the median round is reported. */
export const ROUNDS = 5;

/** The median of the figures that the rounds returned, with the minimum and maximum. */
export interface Measured {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Runs `round` once to warm up and five times for the record. It returns one figure: a rate, a time, a size. */
export async function measure(round: () => number | Promise<number>): Promise<Measured> {
  await round();
  const figures: number[] = [];
  for (let index = 0; index < ROUNDS; index += 1) figures.push(await round());
  return measuredOf(figures);
}

/** Summarises figures that were measured elsewhere; there must be at least one. */
export function measuredOf(figures: readonly number[]): Measured {
  const sorted = figures.toSorted((a, b) => a - b);
  return { median: sorted[sorted.length >> 1]!, min: sorted[0]!, max: sorted.at(-1)! };
}

/** Prints one line: the measured quantity, the median, and the range of the rounds. `unit` is for example `claims/s` or `ms`. */
export function report(what: string, { median, min, max }: Measured, unit: string): void {
  const [shown, low, high] = [median, min, max].map((figure) =>
    figure.toLocaleString("en-US", { maximumSignificantDigits: 3 }),
  );
  process.stdout.write(`  ${what.padEnd(58)} ${(shown ?? "").padStart(9)} ${unit}  (${low} to ${high})\n`);
}
