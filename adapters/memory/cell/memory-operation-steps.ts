import { assert } from "../../../core/assert.ts";
import { describeAllocationRefusal } from "../../../core/ledger/describe-allocation-refusal.ts";
import { compare } from "../../../core/ledger/ledger-state.ts";
import type {
  BeginOutcome,
  ComparedHost,
  HoldingPatch,
  MigrationQuery,
  PatchOutcome,
  ResetOutcome,
  SignalOutcome,
  StatusReset,
  StepOutcome,
} from "../../../core/stores/cell/operation-store.ts";
import { isHeldFor, MOVE_BROKEN_OFF, MOVE_IN_DOUBT } from "../../../core/stores/cell/operation-store.ts";
import { GUEST_IN_QUARANTINE, SERVER_UNCERTAIN } from "../../../core/stores/cell/quarantine.ts";
import { parseAttemptId } from "../../../core/tasks/attempt-id.ts";
import { claimedAllocation } from "../../../core/tasks/claimed-allocation.ts";
import {
  describeEvacuationRefusal,
  type EvacuationRefusal,
  refuseEvacuation,
} from "../../../core/tasks/evacuation-rule.ts";
import { describeGroupConflict, type GroupConflict } from "../../../core/tasks/group-rule.ts";
import { HEARD_AT } from "../../../core/tasks/heard-at.ts";
import type { Migration } from "../../../core/tasks/migration.ts";
import { changeOf, migrationOf, migrationWith, operationOf } from "../../../core/tasks/operation-record.ts";
import type {
  BeginOperation,
  OperationPosition,
  OperationSignal,
  OperationStep,
  StepWrite,
} from "../../../core/tasks/operation-step.ts";
import { startsGuest } from "../../../core/tasks/starts-guest.ts";
import { STAGES_MAX } from "../../../core/tasks/task-record.ts";
import type { AllocationRequest } from "../../../proto/gen/berth/shared.ts";
import type { CellState, CellTransaction, MigrationRow, ServerRow, TaskRow } from "./cell-state.ts";
import { addTask } from "./memory-dispatch-steps.ts";
import { groupConflictOf } from "./memory-group-check.ts";
import { addLeftover, releaseMigration } from "./memory-task-steps.ts";

/** Writes the task, its first step and, for a move, its migration; or writes nothing. */
export function beginStep(tx: CellTransaction, begin: BeginOperation): BeginOutcome {
  const { task, revision, status, write } = begin;
  const { server: spec } = operationOf(task);
  const server = tx.cell.servers.get(spec.uuid);
  if (server === undefined || server.status === "CLOSED" || server.status === "DELETED") return { kind: "gone" };
  if (tx.cell.tasks.has(task.id)) return { kind: "already-begun" };
  if (tx.cell.closedTasks.has(task.id)) return { kind: "closed" };
  const open = (tx.cell.tasksByServer.get(server.uuid) ?? []).find((row) => row.endedAtMs === null);
  if (open !== undefined) return { kind: "busy", running: runningOf(open) };
  if (server.revision !== revision || server.status !== status) return { kind: "changed" };
  const move = status === "ERROR" ? openMoveOf(tx.cell, server.uuid) : undefined;
  if (move !== undefined) {
    const why = move.status === "finished" ? MOVE_IN_DOUBT : MOVE_BROKEN_OFF;
    return { kind: "refused", why, inFlight: false };
  }
  const isStart = startsGuest(operationOf(task).kind);
  if (isStart && server.uncertain === true) return { kind: "refused", why: SERVER_UNCERTAIN, inFlight: false };
  const unfenced = evacuationRefusalOf(tx, write);
  if (unfenced !== null) return { kind: unfenced };
  if (isStart && tx.cell.isInQuarantine(server.uuid)) return { kind: "quarantined" };
  const conflict = conflictOf(tx, server.uuid, write);
  if (conflict !== null) return { kind: "refused", why: describeGroupConflict(conflict), inFlight: conflict.inFlight };
  const outcome = tx.applyAllocations(changeOf(task.id, write));
  if (outcome.kind === "no-capacity") return outcome;
  if (outcome.kind !== "committed") return { kind: "stale", why: describeAllocationRefusal(outcome) };
  addTask(tx, task, "operate");
  const migration = migrationOf(begin);
  if (migration !== null) {
    const moment = { createdAtMs: tx.nowMs, updatedAtMs: tx.nowMs };
    const nothing = {
      status: "",
      destHost: "",
      destAttemptId: "",
      ended: false,
      holdsSource: false,
      runs: false,
      note: "",
    };
    tx.cell.migrations.set(task.id, { ...migration, ...nothing, ...moment });
  }
  const row = tx.cell.tasks.get(task.id);
  assert(row !== undefined, "a task that was just stored");
  writeStep(tx, row, server, write);
  return { kind: "begun", xid: tx.xid };
}

const openMoveOf = (cell: CellState, serverUuid: string): MigrationRow | undefined =>
  [...cell.migrations.values()].find((one) => one.serverUuid === serverUuid && !one.ended);

/** Changes the server and its allocation on its present host, while no task works on it. */
export function patchStep(tx: CellTransaction, { serverUuid, revision, change, spec }: HoldingPatch): PatchOutcome {
  const server = tx.cell.servers.get(serverUuid);
  const isNowhere = server === undefined || (server.host === null && server.status !== "SHELVED_OFFLOADED");
  if (isNowhere || server.status === "CLOSED") return { kind: "gone" };
  const open = (tx.cell.tasksByServer.get(server.uuid) ?? []).find((row) => row.endedAtMs === null);
  if (open !== undefined) return { kind: "busy", running: runningOf(open) };
  if (server.revision !== revision) return { kind: "changed" };
  const outcome = tx.applyAllocations(change);
  if (outcome.kind === "no-capacity") return outcome;
  if (outcome.kind !== "committed") return { kind: "stale", why: describeAllocationRefusal(outcome) };
  server.spec = spec;
  server.revision += 1;
  server.updatedAtMs = tx.nowMs;
  return { kind: "patched", xid: tx.xid };
}

export function claimedOf(cell: CellState, attemptId: string): AllocationRequest | null {
  const attempt = parseAttemptId(attemptId);
  const task = attempt === null ? undefined : cell.tasks.get(attempt.taskId)?.task;
  return attempt === null || task === undefined ? null : claimedAllocation(task, attempt.selection);
}

const runningOf = (row: TaskRow): string => (row.kind === "operate" ? operationOf(row.task).kind : row.kind);

/** Commits one step if the task is at the stage that the step expects. */
export function commitOperationStep(tx: CellTransaction, step: OperationStep): StepOutcome {
  const task = tx.cell.tasks.get(step.taskId);
  const server = tx.cell.servers.get(step.serverUuid);
  if (task === undefined || server === undefined || task.serverUuid !== server.uuid) return { kind: "fenced" };
  if (task.epoch !== step.epoch) return { kind: "fenced" };
  const isSame = task.stage === step.stage && task.outcome === step.outcome && task.selection === step.selection;
  if (task.step === step.step + 1 && isSame) return { kind: "committed", revision: server.revision };
  if (task.endedAtMs !== null || task.step !== step.step) return { kind: "fenced" };
  const conflict = conflictOf(tx, server.uuid, step);
  if (conflict !== null) return { kind: "refused", why: describeGroupConflict(conflict) };
  const unfenced = evacuationRefusalOf(tx, step);
  if (unfenced !== null)
    return { kind: "refused", why: describeEvacuationRefusal(unfenced, step.evacuated?.host ?? "") };
  if (step.startsAttempt !== undefined && tx.cell.isInQuarantine(server.uuid, step.startsAttempt))
    return { kind: "refused", why: GUEST_IN_QUARANTINE };
  const outcome = tx.applyAllocations(changeOf(task.id, step));
  if (outcome.kind !== "committed") return { kind: "refused", why: describeAllocationRefusal(outcome) };
  writeStep(tx, task, server, step);
  return { kind: "committed", revision: server.revision };
}

function conflictOf(tx: CellTransaction, serverUuid: string, { group }: StepWrite): GroupConflict | null {
  return group === undefined ? null : groupConflictOf(tx, serverUuid, group.membership, group.toHost);
}

function evacuationRefusalOf(tx: CellTransaction, { evacuated }: StepWrite): EvacuationRefusal | null {
  const host = evacuated === undefined ? undefined : tx.cell.hosts.get(evacuated.host);
  if (host === undefined || evacuated === undefined) return null;
  const seenAgoMs = tx.nowMs - (tx.cell.agents.get(host.agentId) ?? Number.NEGATIVE_INFINITY);
  return refuseEvacuation({ up: host.up, forcedDown: tx.cell.forcedDown.has(host.name), seenAgoMs }, evacuated);
}

function writeStep(tx: CellTransaction, task: TaskRow, server: ServerRow, write: StepWrite): void {
  const { stage, selection: tried } = write;
  if (stage !== null && (stage !== task.stage || tried !== task.selection))
    task.stages = [...task.stages, { atMs: tx.nowMs, stage, selection: tried }].slice(-STAGES_MAX);
  task.stage = stage;
  task.step += 1;
  task.selection = write.selection;
  task.reason = write.reason;
  if (write.outcome !== null) tx.cell.endTask(task, write.outcome, tx.nowMs);
  const { status, taskState, home, spec, fault, uncertain } = write.server;
  if (status !== undefined) server.status = status;
  if (uncertain === true) server.uncertain = true;
  server.taskState = taskState;
  if (home !== undefined) {
    server.host = home?.host ?? null;
    server.attemptId = home?.attemptId ?? null;
  }
  if (spec !== undefined) server.spec = spec;
  if (fault !== undefined) server.fault = { message: fault, atMs: tx.nowMs };
  server.revision += 1;
  server.updatedAtMs = tx.nowMs;
  if (write.migration !== null) {
    const { uuid, ...changed } = write.migration;
    const row = tx.cell.migrations.get(uuid);
    if (row !== undefined) Object.assign(row, changed, { updatedAtMs: tx.nowMs });
  }
  if (write.leftover !== undefined) addLeftover(tx, server.uuid, write.leftover);
  for (const { selection, host, result, reason } of write.attempts) {
    const before = tx.cell.attempts.get(`${task.id}/${selection}`);
    tx.cell.putAttempt({
      taskId: task.id,
      selection,
      serverUuid: server.uuid,
      host,
      startedAtMs: before?.startedAtMs ?? tx.nowMs,
      endedAtMs: result === null ? null : tx.nowMs,
      result,
      reason: reason === "" ? null : reason,
    });
  }
}

export function resetStep(tx: CellTransaction, { serverUuid, status }: StatusReset): ResetOutcome {
  const server = tx.cell.servers.get(serverUuid);
  if (server === undefined || server.status === "DELETED" || server.status === "CLOSED") return { kind: "gone" };
  const task = [...tx.cell.tasks.values()].find((one) => one.serverUuid === serverUuid && one.endedAtMs === null);
  if (task !== undefined) {
    const { work } = task.task;
    return { kind: "busy", running: work?.$case === "operate" ? work.value.kind : task.kind };
  }
  const move = openMoveOf(tx.cell, serverUuid);
  const waits = server.status === "ERROR" && move?.status === "finished";
  if (move !== undefined && !waits) return { kind: "busy", running: server.status };
  if (server.host === null) return { kind: "nowhere" };
  server.status = waits && status === "ACTIVE" ? "VERIFY_RESIZE" : status;
  if (status === "ACTIVE") server.uncertain = false;
  server.revision += 1;
  server.updatedAtMs = tx.nowMs;
  return { kind: "reset" };
}

export function signalStep(tx: CellTransaction, taskId: string, signal: OperationSignal): SignalOutcome {
  const task = tx.cell.tasks.get(taskId);
  if (task === undefined || task.kind !== "operate" || task.endedAtMs !== null) return "no-such-operation";
  const isHeard =
    HEARD_AT[signal].some((stage) => stage === task.stage) && !(signal === "force" && task.signal === "abort");
  if (!isHeard) return "too-late";
  task.signal = signal;
  task.epoch += 1;
  task.owner = null;
  return "signalled";
}

export function positionOf(cell: CellState, taskId: string): OperationPosition | null {
  const task = cell.tasks.get(taskId);
  const server = task === undefined ? undefined : cell.servers.get(task.serverUuid);
  if (task === undefined || server === undefined || task.kind !== "operate") return null;
  const { stage, step, selection, signal, reason } = task;
  return { taskId, stage: stage ?? "", step, selection, signal, reason, revision: server.revision };
}

export function migrationsOf(cell: CellState, query: MigrationQuery): readonly Migration[] {
  const { serverUuid, uuids, host, inFlightOnly = false, untilMs = Number.POSITIVE_INFINITY, limit } = query;
  const after = query.after === undefined ? null : cell.migrations.get(query.after);
  if (after === undefined) return [];
  return [...cell.migrations.values()]
    .filter((row) => row.kind !== "leftover")
    .filter((row) => serverUuid === undefined || row.serverUuid === serverUuid)
    .filter((row) => uuids === undefined || uuids.includes(row.uuid))
    .filter((row) => host === undefined || row.sourceHost === host || row.destHost === host)
    .filter((row) => !inFlightOnly || !row.ended)
    .filter((row) => row.createdAtMs <= untilMs && (after === null || youngestFirst(after, row) < 0))
    .sort(youngestFirst)
    .slice(0, limit)
    .map((row) => migrationRecord(cell, row));
}

function youngestFirst(a: MigrationRow, b: MigrationRow): number {
  return b.createdAtMs - a.createdAtMs || compare(a.uuid, b.uuid);
}

export function unconfirmedOf(
  cell: CellState,
  beforeMs: number,
  limit: number,
  after: string | null,
): readonly Migration[] {
  return [...cell.migrations.values()]
    .filter((row) => !row.ended && row.status === "finished" && row.updatedAtMs <= beforeMs)
    .filter((row) => after === null || compare(row.serverUuid, after) > 0)
    .sort((a, b) => compare(a.serverUuid, b.serverUuid))
    .slice(0, limit)
    .map((row) => migrationRecord(cell, row));
}

function migrationRecord(cell: CellState, { runs: _, kind, ...row }: MigrationRow): Migration {
  assert(kind !== "leftover", "a leftover is no migration");
  const task = cell.tasks.get(row.uuid)?.task;
  assert(task !== undefined, `migration ${row.uuid} is of no task`);
  return migrationWith({ ...row, kind, progress: cell.transfers.get(row.uuid) ?? null }, task);
}

export function heldForGuests(cell: CellState, host: string): readonly string[] {
  const held = [...cell.migrations.values()].filter((row) => row.holdsSource && row.sourceHost === host);
  return held.map((row) => row.uuid).sort(compare);
}

export function releaseEvacuatedStep(tx: CellTransaction, { host, remaining, held }: ComparedHost): readonly string[] {
  const gone = [...tx.cell.migrations.values()]
    .filter((row) => row.holdsSource && row.sourceHost === host && held?.includes(row.uuid) !== false)
    .filter(({ serverUuid, sourceAttemptId: attemptId }) => {
      const home = tx.cell.servers.get(serverUuid);
      const move = openMoveOf(tx.cell, serverUuid);
      const claimedAttemptIds = [home?.attemptId ?? null, move?.sourceAttemptId ?? null, move?.destAttemptId ?? null];
      return !isHeldFor({ serverUuid, attemptId, claimedAttemptIds }, remaining);
    });
  for (const row of gone) {
    row.holdsSource = false;
    releaseMigration(tx, row.uuid);
  }
  return gone.map((row) => row.uuid).sort(compare);
}
