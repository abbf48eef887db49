import type { HostStore, ServerStore, TaskStore } from "../../core/stores/cell/cell-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import type { BeginStore, MigrationStore, StepStore } from "../../core/stores/cell/operation-store.ts";
import type { PlugStore } from "../../core/stores/cell/plug-store.ts";
import type { QuarantineStore } from "../../core/stores/cell/quarantine.ts";
import type { Bus } from "../../runtime/bus.ts";

/** The parts of the cell's database that a conductor uses. */
export type ConductorStore = TaskStore &
  HostStore &
  StepStore &
  BeginStore &
  MigrationStore &
  QuarantineStore &
  Pick<PlugStore, "pluggedPorts"> &
  Pick<ServerStore, "attempts" | "servers">;
export type ConductorLedger = Pick<Ledger, "reportTrees">;
export type ConductorBus = Pick<Bus, "publish" | "consume" | "answer">;

/** The span of a task within the trace of its request. */
export interface TaskSpan {
  /** W3C traceparent for work that other processes do for the task. Empty when tracing is off. */
  readonly traceparent: string;
  /** The trace's id, for exemplars. Empty when tracing is off. */
  readonly traceId: string;
  /** Ends the span. `error` is null after a success. */
  end(error: string | null): void;
}
