import type { Operation, Task } from "../../proto/gen/berth/cell.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { assert } from "../assert.ts";
import { type AllocationChange, release } from "../ledger/allocation-change.ts";
import { type ConsumerUuid, consumerUuid } from "../ledger/ids.ts";
import { CONSUMER_TYPE_INSTANCE } from "../ledger/model.ts";
import type { Migration, MigrationColumns } from "./migration.ts";
import { isMove, type OperationKind, operationKind } from "./operation-kinds.ts";
import type { BeginOperation, StepWrite } from "./operation-step.ts";

/** Reads the payload of a task of kind `operate`. Asserts that the task is one. */
export function operationOf(task: Task): {
  readonly kind: OperationKind;
  readonly operation: Operation;
  readonly server: ServerSpec;
} {
  const kind = task.work?.$case === "operate" ? operationKind(task.work.value.kind) : null;
  assert(
    kind !== null && task.work?.$case === "operate" && task.server !== undefined,
    `task ${task.id} is no operation`,
  );
  return { kind, operation: task.work.value, server: task.server };
}

/** Combines a move's row with its task. When the task cannot be read, its parts are null and the note says so. */
export function migrationWith(columns: MigrationColumns, task: Task): Migration {
  if (task.work?.$case === "operate" && task.server !== undefined)
    return { ...columns, operation: task.work.value, server: task.server };
  const unreadable = `The record of this move (${columns.uuid}) cannot be read: it is damaged, or of a newer version.`;
  return { ...columns, note: [columns.note, unreadable].filter(Boolean).join(" "), operation: null, server: null };
}

/** The allocation change of a step. A step without one gets a change that does nothing. The first step of the change is a `replace`. */
export function changeOf(taskId: string, write: StepWrite): AllocationChange {
  const nobody = { projectId: "", userId: "", type: CONSUMER_TYPE_INSTANCE };
  const change = write.change ?? release(nobodysUuid(taskId), nobody);
  assert(change.steps[0]?.kind === "replace", "a step's change begins with a replace");
  return change;
}

/**
 * Names a consumer that cannot exist, because no client creates UUIDs of version 15. Each task has its own, so that no task waits for
 * another's lock.
 */
function nobodysUuid(taskId: string): ConsumerUuid {
  return consumerUuid(`${taskId.slice(0, 14)}f${taskId.slice(15)}`);
}

/** The permanent columns of a move's migration, or null when the operation is not a move. */
export function migrationOf(
  begin: BeginOperation,
): Pick<Migration, "uuid" | "serverUuid" | "kind" | "sourceHost" | "sourceAttemptId"> | null {
  const { kind, operation, server } = operationOf(begin.task);
  if (!isMove(kind)) return null;
  const { source } = operation;
  return {
    uuid: begin.task.id,
    serverUuid: server.uuid,
    kind,
    sourceHost: source?.host ?? null,
    sourceAttemptId: source?.attemptId ?? null,
  };
}
