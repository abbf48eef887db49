import type { HostStore, ServerStore, TaskStore } from "../../core/cell/cell-store.ts";
import type { BeginStore, MigrationStore, StepStore } from "../../core/cell/operation-store.ts";
import type { QuarantineStore } from "../../core/cell/quarantine.ts";
import type { Ledger } from "../../core/ledger/ledger-port.ts";
import type { Bus } from "../../runtime/bus.ts";

/** The parts of the cell's database that a conductor uses. */
export type ConductorStore = TaskStore &
  HostStore &
  StepStore &
  BeginStore &
  MigrationStore &
  QuarantineStore &
  Pick<ServerStore, "attempts" | "servers">;
export type ConductorLedger = Pick<Ledger, "putTrees">;
export type ConductorBus = Pick<Bus, "publish" | "consume">;

/** A task as part of its request's trace. */
export interface TaskSpan {
  /** W3C traceparent, for what is done on the task's behalf elsewhere; empty when nothing is traced. */
  readonly traceparent: string;
  /** `error` null: it went well. */
  end(error: string | null): void;
}
