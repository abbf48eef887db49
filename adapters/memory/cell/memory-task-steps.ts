import { assert } from "../../../core/assert.ts";
import { release } from "../../../core/ledger/allocation-change.ts";
import { describeAllocationRefusal } from "../../../core/ledger/describe-allocation-refusal.ts";
import { consumerUuid } from "../../../core/ledger/ids.ts";
import { compare } from "../../../core/ledger/ledger-state.ts";
import { CONSUMER_TYPE_INSTANCE, CONSUMER_TYPE_MIGRATION } from "../../../core/ledger/model.ts";
import type {
  ActiveOutcome,
  CommitOutcome,
  Hop,
  HopOutcome,
  TakenTask,
  UnreadableEnd,
  UnreadableOutcome,
} from "../../../core/stores/cell/cell-store.ts";
import { describeGroupConflict } from "../../../core/tasks/group-rule.ts";
import { keepChange, leftoverUuid } from "../../../core/tasks/move-change.ts";
import { type AttemptResult, attemptIdOf } from "../../../core/tasks/server.ts";
import { TAKINGS_MAX, type TaskOutcome } from "../../../core/tasks/task-record.ts";
import type { Tenure } from "../../../core/tasks/tenure.ts";
import type { CellState, CellTransaction, MigrationRow, ServerRow, TaskRow } from "./cell-state.ts";
import { groupConflictOf } from "./memory-group-check.ts";

const COMMITTED = { kind: "committed" } as const;
const FENCED = { kind: "fenced" } as const;

/** Takes over the task, unless it has ended or is owned by a conductor that is alive. */
export function takeStep(tx: CellTransaction, conductorId: string, taskId: string): TakenTask | null {
  const row = tx.cell.tasks.get(taskId);
  if (row === undefined || row.endedAtMs !== null) return null;
  if (row.owner !== null && row.owner !== conductorId && leaseHolds(tx, row.owner)) return null;
  if (row.owner !== conductorId) noteTaking(tx, row, conductorId);
  row.owner = conductorId;
  row.epoch += 1;
  const server = tx.cell.servers.get(row.serverUuid);
  assert(server !== undefined, `task ${row.id} is of no server`);
  return {
    task: row.task,
    epoch: row.epoch,
    selection: row.selection,
    host: server.host,
    attemptId: server.attemptId,
  };
}

function noteTaking(tx: CellTransaction, row: TaskRow, conductorId: string, atMs = tx.nowMs): void {
  const taking = { atMs, conductorId, name: tx.cell.conductorNames.get(conductorId) ?? "" };
  row.takings = [...row.takings, taking].slice(-TAKINGS_MAX);
}

/** The first conductor that has begun a task has had it since it was stored. Another one that had begun it, too, may have released it. */
function noteUntaken(tx: CellTransaction, row: TaskRow, conductorId: string): void {
  noteTaking(tx, row, conductorId, row.takings.length === 0 ? row.createdAtMs : tx.nowMs);
}

/** Makes the conductor the owner of a task that it has begun without taking it, under the same epoch. */
export function holdStep(tx: CellTransaction, conductorId: string, taskId: string): boolean {
  const row = tx.cell.tasks.get(taskId);
  if (row === undefined || row.endedAtMs !== null || row.epoch > 0) return false;
  if (row.owner !== null && row.owner !== conductorId) return false;
  if (row.owner === null) noteUntaken(tx, row, conductorId);
  row.owner = conductorId;
  return true;
}

/** Takes the tasks that a sweep finds, except those that the conductor leaves to others for now. */
export function sweepStep(
  tx: CellTransaction,
  {
    conductorId,
    untakenMs,
    limit,
    except,
  }: {
    readonly conductorId: string;
    readonly untakenMs: number;
    readonly limit: number;
    readonly except: readonly string[];
  },
): TakenTask[] {
  return sweepable(tx, conductorId, untakenMs)
    .filter((row) => !except.includes(row.id))
    .slice(0, limit)
    .map((row) => takeStep(tx, conductorId, row.id))
    .filter((taken) => taken !== null);
}

/** The tasks that a sweep takes, oldest first: those that nobody took in time, and those whose owner's lease has run out. */
function sweepable(tx: CellTransaction, conductorId: string, untakenMs: number): readonly TaskRow[] {
  return [...tx.cell.running]
    .filter((row) =>
      row.owner === null
        ? row.createdAtMs <= tx.nowMs - untakenMs
        : row.owner !== conductorId && !leaseHolds(tx, row.owner),
    )
    .sort(oldestFirst);
}

/** Releases a task that the conductor owns under this epoch, or has begun and not held yet, provided that another live conductor can take it. */
export function releaseTaskStep(tx: CellTransaction, conductorId: string, tenure: Tenure): boolean {
  const row = tx.cell.tasks.get(tenure.taskId);
  if (row === undefined || row.endedAtMs !== null || row.epoch !== tenure.epoch) return false;
  if (row.owner !== conductorId && (row.owner !== null || row.epoch > 0)) return false;
  if (![...tx.cell.leases.keys()].some((id) => id !== conductorId && leaseHolds(tx, id))) return false;
  row.owner = null;
  return true;
}

/** The running tasks of this conductor, oldest first. */
export function ownedBy(cell: CellState, conductorId: string): readonly TaskRow[] {
  return [...cell.running].filter((row) => row.owner === conductorId).sort(oldestFirst);
}

const oldestFirst = (a: TaskRow, b: TaskRow): number => a.createdAtMs - b.createdAtMs || compare(a.id, b.id);

function leaseHolds(tx: CellTransaction, conductorId: string): boolean {
  return (tx.cell.leases.get(conductorId) ?? 0) > tx.nowMs;
}

export function commitActiveStep(tx: CellTransaction, commit: Tenure & { readonly selection: number }): ActiveOutcome {
  const attemptId = attemptIdOf(commit.taskId, commit.selection);
  const found = findOwned(tx, commit, "success");
  if (found === null || found.server.attemptId !== attemptId) return FENCED;
  const { task, server } = found;
  if (task.endedAtMs !== null) return server.status === "ACTIVE" ? COMMITTED : FENCED;
  if (tx.cell.isInQuarantine(server.uuid, attemptId)) return { kind: "quarantined" };
  if (task.owner === null && commit.untakenBy !== undefined) noteUntaken(tx, task, commit.untakenBy);
  tx.cell.endTask(task, "success", tx.nowMs);
  server.status = "ACTIVE";
  server.taskState = null;
  server.launchedAtMs = tx.nowMs;
  server.updatedAtMs = tx.nowMs;
  endAttempt(tx, attemptId, "success", null);
  return COMMITTED;
}

export function hopStep(tx: CellTransaction, hop: Hop): HopOutcome {
  const found = findOwned(tx, hop, null);
  if (found === null) return FENCED;
  const { task, server } = found;
  // Two conductors may both have begun the task untaken, under one epoch, and the other one is further.
  if (task.selection !== hop.from && task.selection !== hop.to) return FENCED;
  const failed = tx.cell.attempts.get(attemptIdOf(task.id, hop.from));
  if (failed?.result === null) endAttempt(tx, attemptIdOf(task.id, hop.from), hop.result ?? "failed", hop.reason);
  const why = whyNotTo(tx, hop);
  tx.cell.putAttempt({
    taskId: task.id,
    selection: hop.to,
    serverUuid: server.uuid,
    host: hop.toHost,
    startedAtMs: tx.nowMs,
    endedAtMs: why === null ? null : tx.nowMs,
    result: why === null ? null : "skipped",
    reason: why,
  });
  if (why !== null) return { kind: "skipped", why };
  task.selection = hop.to;
  server.host = hop.toHost;
  server.attemptId = attemptIdOf(task.id, hop.to);
  server.updatedAtMs = tx.nowMs;
  return COMMITTED;
}

/** Claims the alternate. Returns why that is impossible, or null when it is claimed. */
function whyNotTo(tx: CellTransaction, hop: Hop): string | null {
  const conflict = groupConflictOf(tx, hop.serverUuid, hop.group, hop.toHost);
  if (conflict) return describeGroupConflict(conflict);
  const outcome = tx.applyAllocations(hop.change);
  return outcome.kind === "committed" ? null : describeAllocationRefusal(outcome);
}

export function commitErrorStep(
  tx: CellTransaction,
  commit: Tenure & { readonly selection: number; readonly attemptReason: string; readonly reason: string },
): CommitOutcome {
  const found = findOwned(tx, commit, "error");
  if (found === null) return FENCED;
  const { task, server } = found;
  if (task.endedAtMs !== null) return COMMITTED;
  tx.cell.endTask(task, "error", tx.nowMs);
  giveBack(tx, server);
  server.status = "ERROR";
  server.fault = { message: commit.reason, atMs: tx.nowMs };
  const attemptId = attemptIdOf(task.id, commit.selection);
  if (tx.cell.attempts.get(attemptId)?.result === null) {
    endAttempt(tx, attemptId, "failed", commit.attemptReason);
  }
  return COMMITTED;
}

export function endUnreadableStep(tx: CellTransaction, { taskId, epoch, reason }: UnreadableEnd): UnreadableOutcome {
  const task = tx.cell.tasks.get(taskId);
  if (task === undefined || task.epoch !== epoch) return FENCED;
  const { serverUuid } = task;
  if (task.endedAtMs !== null) return task.outcome === "error" ? { kind: "ended", serverUuid } : FENCED;
  tx.cell.endTask(task, "error", tx.nowMs);
  task.stage = null;
  const server = tx.cell.servers.get(serverUuid);
  if (server !== undefined && server.status !== "CLOSED" && server.status !== "DELETED") {
    server.status = "ERROR";
    server.taskState = null;
    server.fault = { message: reason, atMs: tx.nowMs };
    server.revision += 1;
    server.updatedAtMs = tx.nowMs;
  }
  for (const attempt of tx.cell.attempts.values())
    if (attempt.taskId === taskId && attempt.result === null)
      endAttempt(tx, attemptIdOf(taskId, attempt.selection), "failed", reason);
  return { kind: "ended", serverUuid };
}

export function commitDeletedStep(tx: CellTransaction, commit: Tenure): CommitOutcome {
  const found = findOwned(tx, commit, "deleted");
  if (found === null) return FENCED;
  const { task, server } = found;
  if (task.endedAtMs !== null) return COMMITTED;
  tx.cell.endTask(task, "deleted", tx.nowMs);
  const left = commit.left ?? [];
  const migrations = (commit.migrations ?? [])
    .map((uuid) => tx.cell.migrations.get(uuid))
    .filter((row) => row?.ended === false);
  // While a server moves, its allocation is at the destination, and its migration holds the source.
  const host = migrations[0]?.destHost ?? server.host;
  if (host !== null && left.includes(host)) keep(tx, server, { taskId: task.id, host });
  giveBack(tx, server);
  for (const row of migrations) if (row !== undefined) endMigration(tx, row, left);
  server.status = "DELETED";
  server.deletedAtMs = tx.nowMs;
  return COMMITTED;
}

/**
 * The task if its epoch is exactly this one and it is still running, or if it has ended with `outcome`, which makes this call a repetition.
 */
function findOwned(
  tx: CellTransaction,
  tenure: Tenure,
  outcome: TaskOutcome | null,
): { readonly task: TaskRow; readonly server: ServerRow } | null {
  const task = tx.cell.tasks.get(tenure.taskId);
  const server = tx.cell.servers.get(tenure.serverUuid);
  if (task === undefined || server === undefined || task.serverUuid !== server.uuid) return null;
  if (task.epoch !== tenure.epoch || (task.endedAtMs !== null && task.outcome !== outcome)) return null;
  return { task, server };
}

function endMigration(tx: CellTransaction, migration: MigrationRow, left: readonly string[]): void {
  migration.ended = true;
  migration.status = "error";
  migration.note = "";
  migration.updatedAtMs = tx.nowMs;
  migration.holdsSource = migration.sourceHost !== null && left.includes(migration.sourceHost);
  if (!migration.holdsSource) releaseMigration(tx, migration.uuid);
}

/** Transfers the server's allocation to a leftover of its host. Without an allocation and volumes no leftover is written. */
function keep(tx: CellTransaction, server: ServerRow, { taskId, host }: { taskId: string; host: string }): void {
  const outcome = tx.applyAllocations(keepChange(server.spec, taskId));
  if (outcome.kind === "committed" || server.spec.volumes.length > 0)
    addLeftover(tx, server.uuid, { uuid: leftoverUuid(taskId), host });
}

/** Records that resources are held for a guest of this server that may still be on the host. */
export function addLeftover(tx: CellTransaction, serverUuid: string, leftover: { uuid: string; host: string }): void {
  const { uuid, host } = leftover;
  tx.cell.migrations.set(uuid, {
    ...{ uuid, serverUuid, kind: "leftover", status: "done" },
    ...{ sourceHost: host, sourceAttemptId: null, destHost: host, destAttemptId: "" },
    ...{ ended: true, holdsSource: true, runs: false, note: "" },
    ...{ createdAtMs: tx.nowMs, updatedAtMs: tx.nowMs },
  });
}

/** Releases the migration's allocation, if it has one. */
export function releaseMigration(tx: CellTransaction, uuid: string): void {
  const nobody = { projectId: "", userId: "", type: CONSUMER_TYPE_MIGRATION };
  const outcome = tx.applyAllocations(release(consumerUuid(uuid), nobody));
  assert(outcome.kind === "committed", `a release was refused: ${outcome.kind}`);
}

function giveBack(tx: CellTransaction, server: ServerRow): void {
  const { projectId, userId } = server.spec;
  const owner = { projectId, userId, type: CONSUMER_TYPE_INSTANCE };
  const outcome = tx.applyAllocations(release(consumerUuid(server.uuid), owner));
  assert(outcome.kind === "committed", `a release was refused: ${outcome.kind}`);
  server.host = null;
  server.attemptId = null;
  server.taskState = null;
  server.updatedAtMs = tx.nowMs;
}

function endAttempt(tx: CellTransaction, attemptId: string, result: AttemptResult, reason: string | null): void {
  const attempt = tx.cell.attempts.get(attemptId);
  if (attempt === undefined) return;
  attempt.result = result;
  attempt.reason = reason;
  attempt.endedAtMs = tx.nowMs;
}
