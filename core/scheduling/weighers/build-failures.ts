import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { ViewHosts } from "../../ledger/view-hosts.ts";
import type { AbsoluteWeigher } from "./weigher.ts";

/** After this many failures in a row a host has lost half of the weigher's multiplier. */
const HALF_AT = 3;

/** Penalties by the slot of a host's root. They are valid while the counts and the mapping of hosts to slots are the same. */
interface Penalties {
  readonly counts: ReadonlyMap<string, number>;
  readonly mapping: number;
  readonly bySlot: Float64Array;
}

/**
 * Avoids hosts on which builds recently failed through the host's fault. Unlike Nova's BuildFailureWeigher the penalty saturates, so a
 * single failure lowers a host's weight but excludes it from nothing. `countsOf` returns a cell's counts by host, in a new map when one of
 * them changes.
 *
 * Cost: one look-up a host, and some 60 ns a count whenever counts or hosts have changed, which is rare.
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
