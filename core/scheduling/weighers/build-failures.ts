import type { LedgerView } from "../../ledger/view.ts";
import type { ViewHosts } from "../../ledger/view-hosts.ts";
import type { AbsoluteWeigher } from "./weigher.ts";

/** After so many failures in a row a host has lost half of the weigher's multiplier. */
const HALF_AT = 3;

/** What hosts lose, by the slots of their roots, as long as counts and hosts are these. */
interface Penalties {
  readonly counts: ReadonlyMap<string, number>;
  readonly mapping: number;
  readonly bySlot: Float64Array;
}

/**
 * Avoids hosts on which builds failed of late by the host's fault (Nova's BuildFailureWeigher, but saturating: one stray failure
 * makes a host less liked, and bans it from nothing). `countsOf`: a cell's counts by host; another map when one of them changes.
 *
 * Cost: one look a host; some 60 ns a count when counts or hosts are others than before, which is seldom.
 */
export function buildFailures(countsOf: (cell: string) => ReadonlyMap<string, number> | undefined): AbsoluteWeigher {
  const known = new WeakMap<Readonly<ViewHosts>, Penalties>();
  const penaltiesOf = (counts: ReadonlyMap<string, number>, view: LedgerView): Float64Array => {
    const { hosts, slots } = view;
    const before = known.get(hosts);
    const isCurrent = before?.counts === counts && before.mapping === hosts.mapping;
    if (isCurrent && before.bySlot.length >= slots.capacity) return before.bySlot;
    const bySlot = new Float64Array(slots.capacity);
    for (const [host, failures] of counts) {
      const slot = hosts.slotOf(host);
      if (slot >= 0) bySlot[slot] = failures / (failures + HALF_AT);
    }
    known.set(hosts, { counts, mapping: hosts.mapping, bySlot });
    return bySlot;
  };
  return {
    name: "build_failure",
    kind: "absolute",
    addTo({ cell, request, roots, count }, weights, offset, multiplier) {
      const counts = countsOf(cell);
      if (!counts || counts.size === 0) return;
      const penalties = penaltiesOf(counts, request.view);
      for (let index = 0; index < count; index += 1) {
        const at = offset + index;
        weights[at] = weights[at]! - multiplier * penalties[roots[index]!]!;
      }
    },
  };
}
