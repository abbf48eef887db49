import type { AbsoluteWeigher } from "./weigher.ts";

/** After so many failures in a row a host has lost half of the weigher's multiplier. */
const HALF_AT = 3;

/**
 * Avoids hosts on which builds failed of late by the host's fault (Nova's BuildFailureWeigher, but saturating: one stray failure
 * makes a host less liked, and bans it from nothing).
 */
export function buildFailures(countsOf: (cell: string) => ReadonlyMap<string, number> | undefined): AbsoluteWeigher {
  let penalties = new Float64Array(0);
  return {
    name: "build_failure",
    kind: "absolute",
    addTo({ cell, request, roots, count }, weights, offset, multiplier) {
      const counts = countsOf(cell);
      if (!counts || counts.size === 0) return;
      const { slots, hosts } = request.view;
      if (penalties.length < slots.capacity) penalties = new Float64Array(slots.capacity);
      const failed: number[] = [];
      for (const [host, failures] of counts) {
        const slot = hosts.slotOf(host);
        if (slot < 0) continue;
        penalties[slot] = (multiplier * failures) / (failures + HALF_AT);
        failed.push(slot);
      }
      for (let index = 0; index < count; index += 1) {
        const penalty = penalties[roots[index]!]!;
        if (penalty !== 0) weights[offset + index] = weights[offset + index]! - penalty;
      }
      for (const slot of failed) penalties[slot] = 0;
    },
  };
}
