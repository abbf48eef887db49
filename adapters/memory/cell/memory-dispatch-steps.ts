import { assert } from "../../../core/assert.ts";
import { describeAllocationRefusal } from "../../../core/ledger/describe-allocation-refusal.ts";
import type {
  CloseOutcome,
  Closing,
  DeleteOutcome,
  Dispatch,
  DispatchOutcome,
} from "../../../core/stores/cell/cell-store.ts";
import { attemptIdOf } from "../../../core/tasks/server.ts";
import { PLAIN_REQUEST } from "../../../core/tasks/server-spec.ts";
import type { Task } from "../../../proto/gen/berth/cell.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { CellTransaction, ServerRow, TaskRow } from "./cell-state.ts";
import { groupConflictOf } from "./memory-group-check.ts";
import { DiskFullError } from "./memory-ledger.ts";

/** No assignment has this number. A delete closes the cell to its server for good. */
const CLOSED_FOR_EVER = 2 ** 31 - 1;

/** Answers all dispatches of a transaction that found no space on the disk. */
export function orRefused(
  dispatches: readonly Dispatch[],
  run: () => readonly DispatchOutcome[],
): readonly DispatchOutcome[] {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof DiskFullError)) throw error;
    return dispatches.map(() => ({ kind: "write-refused", why: error.message }));
  }
}

/** Writes the claim, the server, the task and its first attempt, or nothing. */
export function dispatchStep(tx: CellTransaction, { task, change, assignment = 0 }: Dispatch): DispatchOutcome {
  const spec = task.server;
  const selection = task.work?.$case === "build" ? task.work.value.selections[0] : undefined;
  assert(spec !== undefined && selection !== undefined, `task ${task.id} builds nothing`);
  const present = tx.cell.servers.get(spec.uuid);
  const isClosedBefore = present?.status === "CLOSED" && present.revision < assignment;
  if (present !== undefined && !isClosedBefore) {
    if (present.status !== "CLOSED" && present.status !== "DELETED") return { kind: "already-dispatched" };
    return { kind: tx.cell.isInQuarantine(spec.uuid) ? "quarantined" : "closed" };
  }
  if (tx.cell.isInQuarantine(spec.uuid)) return { kind: "quarantined" };
  const conflict = groupConflictOf(tx, spec.uuid, spec.group, selection.host);
  if (conflict) return conflict;
  const outcome = tx.applyAllocations(change);
  if (outcome.kind === "no-capacity") return outcome;
  if (outcome.kind === "consumer-conflict") return { kind: "consumer-taken", why: describeAllocationRefusal(outcome) };
  if (outcome.kind !== "committed") return { kind: "stale", why: describeAllocationRefusal(outcome) };
  const server = newServer(spec, spec.createdAtMs, tx.nowMs, "BUILD");
  server.taskState = "spawning";
  server.host = selection.host;
  server.attemptId = attemptIdOf(task.id, 0);
  tx.cell.servers.set(spec.uuid, server);
  addTask(tx, task, "build");
  tx.cell.putAttempt({
    taskId: task.id,
    selection: 0,
    serverUuid: spec.uuid,
    host: selection.host,
    startedAtMs: tx.nowMs,
    endedAtMs: null,
    result: null,
    reason: null,
  });
  return { kind: "dispatched", xid: tx.xid };
}

/** Marks the UUID of an absent server as closed, so that the server cannot be dispatched here later under this assignment. */
export function closeStep(tx: CellTransaction, { serverUuid, assignment }: Closing): CloseOutcome {
  const present = tx.cell.servers.get(serverUuid);
  if (present === undefined) shut(tx, serverUuid, assignment);
  else if (present.status === "CLOSED") present.revision = Math.max(present.revision, assignment);
  if (present !== undefined && present.status !== "CLOSED" && present.status !== "DELETED") return "present";
  return tx.cell.isInQuarantine(serverUuid) ? "quarantined" : "closed";
}

/** Fences everything that runs for the server, and stores the task that removes it. A server without a host is deleted at once. */
export function requestDeleteStep(tx: CellTransaction, task: Task): DeleteOutcome {
  assert(task.work?.$case === "delete" && task.server !== undefined, `task ${task.id} deletes nothing`);
  const server = tx.cell.servers.get(task.server.uuid);
  if (server === undefined) {
    shut(tx, task.server.uuid, CLOSED_FOR_EVER);
    return { kind: "deleted" };
  }
  if (server.status === "CLOSED") server.revision = CLOSED_FOR_EVER;
  if (server.status === "CLOSED" || server.status === "DELETED") return { kind: "deleted" };
  const tasks = tx.cell.tasksByServer.get(server.uuid) ?? [];
  const earlier = tasks.find((row) => row.kind === "delete" && row.endedAtMs === null);
  if (earlier !== undefined) return { kind: "queued", task: earlier.task };
  cancelAll(tx, server);
  server.updatedAtMs = tx.nowMs;
  if (server.host === null) {
    server.status = "DELETED";
    server.taskState = null;
    server.deletedAtMs = tx.nowMs;
    return { kind: "deleted" };
  }
  server.taskState = "deleting";
  addTask(tx, task, "delete");
  return { kind: "queued", task };
}

function cancelAll(tx: CellTransaction, server: ServerRow): void {
  for (const row of tx.cell.tasksByServer.get(server.uuid) ?? []) {
    if (row.endedAtMs !== null) continue;
    row.epoch += 1;
    tx.cell.endTask(row, "cancelled", tx.nowMs);
  }
  for (const attempt of tx.cell.attemptsOf(server.uuid)) {
    if (attempt.result !== null) continue;
    attempt.result = "cancelled";
    attempt.endedAtMs = tx.nowMs;
  }
}

export function addTask(tx: CellTransaction, task: Task, kind: TaskRow["kind"]): void {
  assert(!tx.cell.tasks.has(task.id), `task ${task.id} is stored already`);
  tx.cell.addTask({
    id: task.id,
    serverUuid: task.server?.uuid ?? "",
    kind,
    task,
    epoch: 0,
    owner: null,
    selection: 0,
    createdAtMs: tx.nowMs,
    endedAtMs: null,
    outcome: null,
    stage: null,
    step: 0,
    signal: null,
    reason: "",
    takings: [],
    stages: [],
  });
}

/** The revision of a closed server is the number of the last assignment under which it must not come to this cell. */
function shut(tx: CellTransaction, serverUuid: string, assignment: number): void {
  const nothing: ServerSpec = {
    uuid: serverUuid,
    name: "",
    projectId: "",
    userId: "",
    flavor: undefined,
    imageRef: "",
    metadata: {},
    availabilityZone: "",
    requestId: "",
    createdAtMs: tx.nowMs,
    ...PLAIN_REQUEST,
  };
  tx.cell.servers.set(serverUuid, { ...newServer(nothing, tx.nowMs, tx.nowMs, "CLOSED"), revision: assignment });
}

function newServer(spec: ServerSpec, createdAtMs: number, nowMs: number, status: ServerRow["status"]): ServerRow {
  return {
    uuid: spec.uuid,
    status,
    taskState: null,
    spec,
    host: null,
    attemptId: null,
    fault: null,
    createdAtMs,
    updatedAtMs: nowMs,
    launchedAtMs: null,
    deletedAtMs: null,
    revision: 0,
  };
}
