import { compare } from "../../../core/ledger/ledger-state.ts";
import type { HostRecord } from "../../../core/stores/cell/cell-store.ts";
import type { CellState } from "./cell-state.ts";
import { residentsOf, sightingOf } from "./memory-host-steps.ts";
import { heldForGuests } from "./memory-operation-steps.ts";

/** In the order of the hosts. */
export function hostRecordsOf(
  cell: CellState,
  hosts: readonly string[],
  {
    nowMs,
    incarnation,
    withResidents,
  }: { readonly nowMs: number; readonly incarnation: string; readonly withResidents: boolean },
): readonly HostRecord[] {
  const residents = withResidents ? residentsOf(cell, hosts) : [];
  const quarantined = [...cell.quarantined.values()];
  return hosts.map((host, index) => ({
    sighting: sightingOf(cell, host, nowMs),
    residents: residents[index] ?? [],
    held: heldForGuests(cell, host),
    quarantined: quarantined.flatMap((guest) => (guest.host === host ? [guest.attemptId] : [])).sort(compare),
    incarnation,
  }));
}
