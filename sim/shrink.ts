import { type SimOptions, type SimResult, simulate } from "./simulate.ts";

export interface Shrunk {
  /** The shortest time for which users and faults must continue for the seed to fail, in simulated milliseconds. */
  readonly busyMs: number;
  /** The failing run, with its whole history. */
  readonly result: SimResult;
}

/** The shortest prefix is found to within this many milliseconds. */
const PRECISION_MS = 100;

/**
 * Finds the shortest prefix of a failing seed's life that still fails. Users and faults stop at its end, and are the same up to there. Runs
 * the world about ten times.
 */
export async function shrink(options: SimOptions, failed: SimResult): Promise<Shrunk> {
  const run = (busyMs: number, wholeHistory: boolean) => simulate({ ...options, stopMs: busyMs, wholeHistory });
  let fails = Math.min(options.busyMs, (failed.findings[0]?.atMs ?? options.busyMs) + 1);
  let holds = 0;
  while (fails - holds > PRECISION_MS) {
    const middle = Math.floor((fails + holds) / 2);
    const { findings } = await run(middle, false);
    if (findings.length > 0) fails = middle;
    else holds = middle;
  }
  const result = await run(fails, true);
  // A failure that depends on the exact moment of the cut may not show a moment earlier or later, but the whole life is certain to fail.
  if (result.findings.length > 0) return { busyMs: fails, result };
  return { busyMs: options.busyMs, result: await run(options.busyMs, true) };
}
