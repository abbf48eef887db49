import type { CellReading } from "../../core/audit/facts.ts";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/stores/cell/host-admin-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";

/** A cell's store with what a test needs beside it. */
export interface WorldBody {
  readonly store: CellStore;
  readonly ledger: Ledger;
  readonly admin: Pick<HostAdminStore, "setForcedDown">;
  /** Time goes on so far that nobody has seen the agents for a while, except those that are told to be seen then. */
  pass(): Promise<void>;
  facts(): Promise<Omit<CellReading, "cell" | "runningGuests" | "copies">>;
}
