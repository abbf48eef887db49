import { PROFILES } from "../../sim/profiles.ts";
import type { SimOptions } from "../../sim/simulate.ts";

const SIZE = { cells: 2, apis: 2, schedulers: 2, conductors: 2, hosts: 12, operations: 60, busyMs: 20_000 };
/** A world takes a tenth of a second, and far longer on a busy machine. */
export const TIMEOUT_MS = 240_000;

/** A world of the usual size, by its seed and the name of its profile. */
export function world(seed: number, profile: string, more: Partial<SimOptions> = {}): SimOptions {
  const found = PROFILES.find(({ name }) => name === profile);
  if (found === undefined) throw new Error(`no profile ${profile}`);
  return { ...SIZE, seed, profile: found, mutation: null, wholeHistory: false, ...more };
}
