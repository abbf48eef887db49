import type { HostFacts } from "../host-facts.ts";
import type { HostBatch } from "./weigher.ts";

/**
 * Writes a weight for each host, computed from its facts, or 0 for a host without facts. Returns false and writes nothing when the cell has
 * no facts.
 */
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
