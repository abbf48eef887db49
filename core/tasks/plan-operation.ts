import type { Caller, Operation, Task } from "../../proto/gen/berth/cell.ts";
import type { Selection, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { Holding } from "../ledger/holding.ts";
import { parseAttemptId } from "./attempt-id.ts";
import type { ReadableMigration } from "./migration.ts";
import { factsOf } from "./operation-facts.ts";
import { firstStage, isMove, OPERATIONS, type OperationKind } from "./operation-kinds.ts";
import type { BeginOperation } from "./operation-step.ts";
import { writeOf } from "./operation-writes.ts";
import type { Server, ServerStatus } from "./server.ts";

/** What somebody wants done, with all that the cell said of the server when it was decided. */
export interface OperationRequest {
  /** A new uuid: the task's, and a move's migration's. */
  readonly taskId: string;
  readonly kind: OperationKind;
  readonly server: Server;
  /** What the server holds; null: nothing. */
  readonly holding: Holding | null;
  /** Of a move: destinations of the server's cell, best first; at least one. A rebuild's is its own host and allocation. */
  readonly selections?: readonly Selection[];
  /** The server as it is to be afterwards: a resize's new flavor, a rebuild's new image. */
  readonly after?: ServerSpec;
  /** Of confirm and revert: the migration that waits for it. */
  readonly migration?: ReadableMigration;
  /** Of an evacuation: it may take the server from a host that no operator has forced down, once nobody has seen its agent for `unseenMs`. */
  readonly fenceWaived?: boolean;
  readonly unseenMs?: number;
  /** Who asked for it; absent: nobody did. */
  readonly askedBy?: Caller;
}

export type PlannedOperation =
  | { readonly kind: "planned"; readonly begin: BeginOperation }
  /** One operation at a time; what runs. */
  | { readonly kind: "busy"; readonly running: string }
  /** Not from this status. */
  | { readonly kind: "wrong-status"; readonly status: ServerStatus; readonly allowed: readonly ServerStatus[] }
  /** Confirm or revert of what waits for neither. */
  | { readonly kind: "nothing-to-confirm" };

/** The operation as a cell's store begins it. Asserts that a move has a destination. */
export function planOperation(request: OperationRequest): PlannedOperation {
  const { taskId, kind, server, migration } = request;
  const allowed = OPERATIONS[kind].allowedFrom;
  if (server.taskState !== null) return { kind: "busy", running: server.taskState };
  const isNowhere = server.host === null && kind !== "unshelve";
  if (isNowhere || !allowed.includes(server.status)) return { kind: "wrong-status", status: server.status, allowed };
  const settles = kind === "confirm" || kind === "revert";
  if (settles && (migration === undefined || migration.ended || migration.status !== "finished"))
    return { kind: "nothing-to-confirm" };
  const operation = settles && migration ? settling(kind, migration) : changing(request);
  const after = kind === "revert" ? operation.before : (request.after ?? server.spec);
  const { askedBy } = request;
  const task: Task = {
    ...{ id: taskId, server: after, work: { $case: "operate", value: operation } },
    ...(askedBy !== undefined && { askedBy }),
  };
  const facts = factsOf(task);
  const arrow = {
    from: null,
    to: firstStage(kind),
    selection: 0,
    reason: "",
    noted: [],
    unseenMs: request.unseenMs ?? 0,
  };
  const write = writeOf(facts, arrow);
  return { kind: "planned", begin: { task, revision: server.revision, status: server.status, write } };
}

function changing({
  taskId,
  kind,
  server,
  holding,
  selections = [],
  fenceWaived = false,
}: OperationRequest): Operation {
  const items = (holding?.items ?? []).map((item) => ({ ...item }));
  const source =
    server.host === null
      ? undefined
      : { host: server.host, attemptId: server.attemptId ?? "", allocation: { items, mappings: {} } };
  return {
    kind,
    source,
    selections: [...selections],
    destination: undefined,
    before: server.spec,
    statusBefore: server.status,
    migrationUuid: isMove(kind) ? taskId : "",
    fenceWaived,
  };
}

/** Confirm and revert speak of the places of the move that they end. */
function settling(kind: OperationKind, migration: ReadableMigration): Operation {
  const { operation, destHost, destAttemptId } = migration;
  const taken = operation.selections[parseAttemptId(destAttemptId)?.selection ?? 0];
  return {
    kind,
    source: operation.source,
    selections: [],
    destination: { host: destHost, attemptId: destAttemptId, allocation: taken?.allocation },
    before: operation.before,
    statusBefore: operation.statusBefore,
    migrationUuid: migration.uuid,
    fenceWaived: false,
  };
}
