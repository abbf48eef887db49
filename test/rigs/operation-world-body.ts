import type { CellReading } from "../../core/audit/facts.ts";
import type { CellStore, TakenTask } from "../../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/stores/cell/host-admin-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import type { OperationState, OperationWorld } from "../../core/tasks/operation-machine.ts";

/** The connection of each host, or null where there is none. */
export type Connections = readonly (number | null)[];
/** A conductor's work on one task. */
export interface Run {
  readonly taken: TakenTask;
  readonly world: OperationWorld;
  state: OperationState;
  /** The connections that existed when the database was last asked about the task and confirmed it (`HeldTask` of the conductor). */
  confirmed: Connections;
}

/** A cell's store with the other parts that a test needs. */
export interface WorldBody {
  readonly store: CellStore;
  readonly ledger: Ledger;
  readonly admin: Pick<HostAdminStore, "setForcedDown">;
  /** Advances the time so far that all agents count as unseen, except those that are then marked as seen. */
  pass(): Promise<void>;
  facts(): Promise<Omit<CellReading, "cell" | "runningGuests" | "copies">>;
}
