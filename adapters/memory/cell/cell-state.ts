import type { TransferProgress } from "../../../core/agent/transfer-progress.ts";
import type { HypervisorFacts } from "../../../core/ledger/hypervisor-facts.ts";
import type { PluggedPort } from "../../../core/stores/cell/plug-store.ts";
import type { QuarantinedGuest } from "../../../core/stores/cell/quarantine.ts";
import type { OperationKind } from "../../../core/tasks/operation-kinds.ts";
import type { OperationSignal } from "../../../core/tasks/operation-step.ts";
import type { AttemptResult, ServerStatus } from "../../../core/tasks/server.ts";
import { attemptIdOf } from "../../../core/tasks/server.ts";
import type { ReachedStage, Taking, TaskOutcome } from "../../../core/tasks/task-record.ts";
import type { Task } from "../../../proto/gen/berth/cell.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { MemoryTransaction } from "./memory-ledger.ts";
import { TrackedMoves } from "./tracked-moves.ts";
import { TrackedServers } from "./tracked-servers.ts";

/** A row of `servers`. `CLOSED` marks a UUID for which this cell must not accept a server. */
export interface ServerRow {
  readonly uuid: string;
  status: ServerStatus | "CLOSED";
  taskState: string | null;
  spec: ServerSpec;
  host: string | null;
  attemptId: string | null;
  fault: { readonly message: string; readonly atMs: number } | null;
  /** It is unknown where the server runs, because the database has lost commits. */
  uncertain?: boolean;
  readonly createdAtMs: number;
  updatedAtMs: number;
  launchedAtMs: number | null;
  deletedAtMs: number | null;
  revision: number;
}

/** A row of `tasks`. */
export interface TaskRow {
  readonly id: string;
  readonly serverUuid: string;
  readonly kind: "build" | "delete" | "operate";
  readonly task: Task;
  epoch: number;
  owner: string | null;
  selection: number;
  readonly createdAtMs: number;
  endedAtMs: number | null;
  outcome: TaskOutcome | null;
  /** Only for operations; see OperationPosition. */
  stage: string | null;
  step: number;
  signal: OperationSignal | null;
  reason: string;
  takings: readonly Taking[];
  stages: readonly ReachedStage[];
}

/** A row of `migrations`. */
export interface MigrationRow {
  readonly uuid: string;
  readonly serverUuid: string;
  /** `leftover` is not a move. It holds the resources of a guest that a delete or an offload could not destroy. */
  readonly kind: OperationKind | "leftover";
  status: string;
  readonly sourceHost: string | null;
  readonly sourceAttemptId: string | null;
  destHost: string;
  destAttemptId: string;
  ended: boolean;
  holdsSource: boolean;
  runs: boolean;
  note: string;
  readonly createdAtMs: number;
  updatedAtMs: number;
}

/** A row of `attempts`. */
export interface AttemptRow {
  readonly taskId: string;
  readonly selection: number;
  readonly serverUuid: string;
  readonly host: string;
  readonly startedAtMs: number;
  endedAtMs: number | null;
  result: AttemptResult | null;
  reason: string | null;
}

/** A row of `hosts`. */
export interface HostRow {
  readonly name: string;
  rootProvider: string;
  agentId: string;
  up: boolean;
  /** Since when the host is up, if it is. */
  readonly upAtMs: number;
  disabled: boolean;
  hypervisor: HypervisorFacts;
}

/** The tables of one cell except its ledger, with the indexes that the steps need. */
export class CellState {
  readonly servers = new TrackedServers<ServerRow>();
  readonly tasks = new Map<string, TaskRow>();
  /** Operations that can no longer begin. */
  readonly closedTasks = new Set<string>();
  /** Tasks that have not ended. */
  readonly running = new Set<TaskRow>();
  readonly tasksByServer = new Map<string, TaskRow[]>();
  /** By attempt id. */
  readonly attempts = new Map<string, AttemptRow>();
  readonly attemptsByServer = new Map<string, Set<string>>();
  readonly hosts = new Map<string, HostRow>();
  readonly migrations = new TrackedMoves<MigrationRow>();
  /** How far the hand-overs of moves have come, by migration. */
  readonly transfers = new Map<string, TransferProgress>();
  /** The ports that Neutron has reported at the destinations of live migrations, by attempt and port. */
  readonly plugged = new Map<string, Map<string, PluggedPort>>();
  /** Why hosts are disabled, where a reason was given. */
  readonly disabledReasons = new Map<string, string>();
  /** Hosts that operators keep down. */
  readonly forcedDown = new Set<string>();
  /** When each agent was last seen. */
  readonly agents = new Map<string, number>();
  /** The guests in quarantine, by host and attempt. */
  readonly quarantined = new Map<string, QuarantinedGuest>();
  /** The incarnation with which all guests of each host were last compared. */
  readonly compared = new Map<string, string>();
  readonly conductorNames = new Map<string, string>();
  /** Until when each conductor's lease holds. */
  readonly leases = new Map<string, number>();
  /** When each conductor last renewed its lease. */
  readonly leaseRenewals = new Map<string, number>();

  /** Returns a function that restores all rows as they are now. Cost: copies all rows, twice. */
  remember(): () => void {
    const kept = structuredClone(this.#tables());
    return () => {
      // One clone of all tables keeps references to the same row identical.
      const again = structuredClone(kept);
      for (const [at, table] of this.#tables().entries()) {
        table.clear();
        const rows = again[at];
        if (table instanceof Map && rows instanceof Map) for (const [key, row] of rows) table.set(key, row);
        if (table instanceof Set && rows instanceof Set) for (const row of rows) table.add(row);
      }
    };
  }

  #tables(): (Map<string, unknown> | Set<unknown>)[] {
    return [
      this.servers,
      this.tasks,
      this.closedTasks,
      this.running,
      this.tasksByServer,
      this.attempts,
      this.attemptsByServer,
      this.hosts,
      this.migrations,
      this.transfers,
      this.disabledReasons,
      this.forcedDown,
      this.agents,
      this.quarantined,
      this.compared,
      this.conductorNames,
      this.leases,
      this.leaseRenewals,
    ] as (Map<string, unknown> | Set<unknown>)[];
  }

  addTask(row: TaskRow): void {
    this.tasks.set(row.id, row);
    this.running.add(row);
    const ofServer = this.tasksByServer.get(row.serverUuid);
    if (ofServer === undefined) this.tasksByServer.set(row.serverUuid, [row]);
    else ofServer.push(row);
  }

  endTask(row: TaskRow, outcome: TaskOutcome, nowMs: number): void {
    row.endedAtMs = nowMs;
    row.outcome = outcome;
    this.running.delete(row);
  }

  putAttempt(row: AttemptRow): void {
    const id = attemptIdOf(row.taskId, row.selection);
    this.attempts.set(id, row);
    const ofServer = this.attemptsByServer.get(row.serverUuid);
    if (ofServer === undefined) this.attemptsByServer.set(row.serverUuid, new Set([id]));
    else ofServer.add(id);
  }

  /** Whether a guest of the server, other than that of the given attempt, is in quarantine and was not condemned by an operator. */
  isInQuarantine(serverUuid: string, besides: string | null = null): boolean {
    return this.quarantined
      .values()
      .some(
        (guest) =>
          guest.serverUuid.toLowerCase() === serverUuid &&
          guest.holds &&
          !guest.condemned &&
          guest.attemptId !== besides,
      );
  }

  attemptsOf(serverUuid: string): AttemptRow[] {
    const ids = this.attemptsByServer.get(serverUuid) ?? [];
    return Array.from(ids, (id) => this.attempts.get(id)).filter((row) => row !== undefined);
  }
}

/** The means of a step: the rows, the ledger's transaction, and the single moment at which the whole step happens. */
export interface CellTransaction extends Pick<MemoryTransaction, "applyAllocations" | "emit" | "providers"> {
  readonly cell: CellState;
  readonly xid: number;
  readonly nowMs: number;
}
