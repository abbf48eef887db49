import type { Caller } from "../../../proto/gen/berth/cell.ts";
import type { AllocationItem, Selection } from "../../../proto/gen/berth/shared.ts";
import { claimedAllocation } from "../../tasks/claimed-allocation.ts";
import type { Migration } from "../../tasks/migration.ts";
import type { Attempt, AttemptResult } from "../../tasks/server.ts";
import type { Taking, TaskRecord } from "../../tasks/task-record.ts";

/** A build, an operation or a delete in the form in which it is reported afterwards. Times are milliseconds since the epoch. */
export interface TaskLife extends Pick<TaskRecord, "createdAtMs" | "endedAtMs" | "outcome" | "stage" | "reason"> {
  readonly id: string;
  /** `build`, `delete`, or the kind of the operation. */
  readonly kind: string;
  /** Null when no caller requested the task, or when a version stored it that did not note the caller. */
  readonly askedBy: Caller | null;
  /** The conductors that carried the task, each until the next one took it. */
  readonly conductors: readonly Taking[];
  /** Stages of an operation; `host` is the destination that was being tried. */
  readonly stages: readonly { readonly atMs: number; readonly stage: string; readonly host: string | null }[];
  /** The hosts that the scheduler gave the task, each once, in the order in which they are tried: the chosen one, then the alternates. */
  readonly planned: readonly string[];
  readonly attempts: readonly AttemptLife[];
  readonly hops: readonly HopLife[];
  readonly move: MoveLife | null;
}

export interface AttemptLife {
  readonly host: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly result: AttemptResult | null;
  readonly reason: string | null;
  /** Names of the conductors that carried the task during the attempt. */
  readonly conductors: readonly string[];
  /** The claim of the attempt. For a host that was skipped for lack of room, the requested amounts. */
  readonly claim: readonly AllocationItem[];
}

/** The server left a host for an alternate. One transaction released the claim on the first host and made that on the second. */
export interface HopLife {
  readonly atMs: number;
  readonly from: string;
  readonly to: string;
  readonly reason: string | null;
  readonly gaveBack: readonly AllocationItem[];
  readonly claimed: readonly AllocationItem[];
}

export interface MoveLife {
  readonly from: string | null;
  readonly to: string | null;
  /** Nova's status of the migration; null for a revert or a confirmation, which has no status of its own. */
  readonly status: string | null;
  /** The reason why the move waits or was not confirmed, or "". */
  readonly note: string;
}

/** Builds the report of a task. `attempts` and `migrations` are all those of the server. */
export function taskLife(record: TaskRecord, attempts: readonly Attempt[], migrations: readonly Migration[]): TaskLife {
  const { task, kind, createdAtMs, endedAtMs, outcome, stage, reason, takings } = record;
  const tried = attempts.filter(({ taskId }) => taskId === task.id).toSorted((a, b) => a.selection - b.selection);
  return {
    ...{ id: task.id, createdAtMs, endedAtMs, outcome, stage, reason, conductors: takings },
    kind: task.work?.$case === "operate" ? task.work.value.kind : kind,
    askedBy: callerOf(record),
    stages: record.stages.map((one) => ({
      ...{ atMs: one.atMs, stage: one.stage },
      host: hostOf(record, one.selection),
    })),
    planned: [...new Set(selectionsOf(record).map(({ host }) => host))],
    attempts: tried.map((attempt) => ({
      ...{ host: attempt.host, startedAtMs: attempt.startedAtMs, endedAtMs: attempt.endedAtMs },
      ...{ result: attempt.result, reason: attempt.reason },
      conductors: carriersOf(takings, attempt),
      claim: claimOf(record, attempt.selection),
    })),
    hops: hopsOf(record, tried),
    move: moveOf(record, migrations),
  };
}

function callerOf({ task, kind }: TaskRecord): Caller | null {
  if (task.askedBy !== undefined) return task.askedBy;
  if (kind !== "build" || task.server === undefined) return null;
  const { requestId, userId, projectId } = task.server;
  return { requestId, userId, projectId };
}

const hostOf = (record: TaskRecord, selection: number): string | null => selectionsOf(record)[selection]?.host ?? null;

const selectionsOf = ({ task: { work } }: TaskRecord): readonly Selection[] =>
  work?.$case === "operate" || work?.$case === "build" ? work.value.selections : [];

function claimOf({ task }: TaskRecord, selection: number): readonly AllocationItem[] {
  return claimedAllocation(task, selection)?.items ?? [];
}

/** The conductors that owned the task at some moment of the attempt. Each owns it until the next one takes it. */
function carriersOf(takings: readonly Taking[], { startedAtMs, endedAtMs }: Attempt): readonly string[] {
  const carried = takings.filter(({ atMs }, index) => {
    const leftAtMs = takings[index + 1]?.atMs ?? Number.POSITIVE_INFINITY;
    return atMs <= (endedAtMs ?? Number.POSITIVE_INFINITY) && leftAtMs > startedAtMs;
  });
  return [...new Set(carried.map(({ name, conductorId }) => (name === "" ? conductorId : name)))];
}

/** The hops from each attempt that held a claim to the next such attempt. An alternate without room began and ended at the same moment. */
function hopsOf(record: TaskRecord, attempts: readonly Attempt[]): readonly HopLife[] {
  const held = attempts.filter(
    ({ result, startedAtMs, endedAtMs }) => result !== "skipped" || startedAtMs !== endedAtMs,
  );
  return held.slice(1).map((to, index) => {
    const from = held[index] as Attempt;
    return {
      ...{ atMs: to.startedAtMs, from: from.host, to: to.host, reason: from.reason },
      gaveBack: claimOf(record, from.selection),
      claimed: claimOf(record, to.selection),
    };
  });
}

function moveOf({ task: { id, work } }: TaskRecord, migrations: readonly Migration[]): MoveLife | null {
  const migration = migrations.find(({ uuid }) => uuid === id);
  if (migration !== undefined) {
    const { sourceHost, destHost, status, note } = migration;
    return { from: sourceHost, to: destHost === "" ? null : destHost, status, note };
  }
  if (work?.$case !== "operate" || work.value.destination === undefined) return null;
  const { kind, source, destination } = work.value;
  if (kind !== "revert") return null;
  return { from: destination.host, to: source?.host ?? null, status: null, note: "" };
}
