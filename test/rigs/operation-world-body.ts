import type { CellReading } from "../../core/audit/facts.ts";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/stores/cell/host-admin-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";

/** A cell's store with the other parts that a test needs. */
export interface WorldBody {
  readonly store: CellStore;
  readonly ledger: Ledger;
  readonly admin: Pick<HostAdminStore, "setForcedDown">;
  /** Advances the time so far that all agents count as unseen, except those that are then marked as seen. */
  pass(): Promise<void>;
  facts(): Promise<Omit<CellReading, "cell" | "runningGuests" | "copies">>;
}
