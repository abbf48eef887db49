import { type SimOptions, type SimResult, simulate } from "./simulate.ts";

export interface Shrunk {
  /** The shortest time that users and faults have to go on for the seed to fail, in milliseconds of the world. */
  readonly busyMs: number;
  /** The run that fails, with all of its history. */
  readonly result: SimResult;
}

/** Within so much the shortest prefix is found. */
const PRECISION_MS = 100;

/**
 * The shortest prefix of a failing seed's life that still fails: users and faults stop at its end, and are the same up to there. Runs
 * the world some ten times.
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
  // What follows from a cut at just this moment may be missing a moment earlier: the whole life fails for certain.
  if (result.findings.length > 0) return { busyMs: fails, result };
  return { busyMs: options.busyMs, result: await run(options.busyMs, true) };
}
