import type { HostFacts } from "../host-facts.ts";
import type { HostBatch } from "./weigher.ts";

/** Writes what a host's facts are worth, for each host; 0 for one without. False: there are no facts, and nothing was written. */
export function weighFacts(
  { facts, roots, count }: HostBatch,
  weights: Float64Array,
  offset: number,
  worth: (host: HostFacts) => number,
): boolean {
  if (!facts) return false;
  for (let index = 0; index < count; index += 1) {
    const host = facts.at(roots[index]!);
    weights[offset + index] = host ? worth(host) : 0;
  }
  return true;
}
