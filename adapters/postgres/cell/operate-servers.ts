import type { Pool, PoolClient } from "pg";
import { assert } from "../../../core/assert.ts";
import type { AllocationChange, AllocationOutcome } from "../../../core/ledger/allocation-change.ts";
import { describeAllocationRefusal } from "../../../core/ledger/describe-allocation-refusal.ts";
import type { BeginOutcome, SignalOutcome, StepOutcome } from "../../../core/stores/cell/operation-store.ts";
import { GUEST_IN_QUARANTINE } from "../../../core/stores/cell/quarantine.ts";
import { describeEvacuationRefusal, type EvacuationRefusal } from "../../../core/tasks/evacuation-rule.ts";
import { describeGroupConflict, groupsEntangle } from "../../../core/tasks/group-rule.ts";
import { HEARD_AT } from "../../../core/tasks/heard-at.ts";
import { changeOf, migrationOf, operationOf } from "../../../core/tasks/operation-record.ts";
import type {
  BeginOperation,
  OperationPosition,
  OperationSignal,
  OperationStep,
  StepWrite,
} from "../../../core/tasks/operation-step.ts";
import { Task } from "../../../proto/gen/berth/cell.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { encodeMessage } from "../../../runtime/encode-message.ts";
import { encodeOnce } from "../../../runtime/encode-once.ts";
import { inRounds } from "../client/in-rounds.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { packBytes } from "../client/pack-bytes.ts";
import { runStored } from "../client/run-stored.ts";
import { onlyUuids, queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { decodeOutcome, encodeChanges } from "../ledger/encode-changes.ts";
import { checkEvacuations } from "./check-evacuations.ts";
import { type GroupedClaim, joinGroups } from "./join-groups.ts";
import { lookForOthersInQuarantine } from "./others-in-quarantine.ts";
import { readAstray } from "./read-astray.ts";

interface AnswerRow {
  readonly at: number;
  readonly outcome: string;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

/** Cost: three round trips (a transaction), and a fourth where a server is in a group. */
export function beginOperations(pool: Pool, operations: readonly BeginOperation[]): Promise<readonly BeginOutcome[]> {
  return inRounds(
    operations,
    ({ task }) => operationOf(task).server.uuid,
    (round) => runStored("cell_begin", () => inTransaction(pool, (client) => beginRound(client, round))),
    (one, round) => round.some((other) => groupsEntangle(claimOfBegin(other), claimOfBegin(one))),
  );
}

async function beginRound(client: PoolClient, begins: readonly BeginOperation[]): Promise<readonly BeginOutcome[]> {
  const conflicts = await joinGroups(client, begins.map(claimOfBegin));
  const evacuations = await checkEvacuations(
    client,
    begins.map(({ write }) => write),
  );
  const astray = await readAstray(client, begins);
  const changes = begins.map(({ task, write }) => changeOf(task.id, write));
  const records = begins.map((begin, at) => {
    const { kind, operation, server } = operationOf(begin.task);
    const conflict = conflicts.get(at);
    return {
      ...recordOf({ taskId: begin.task.id, serverUuid: server.uuid, step: 0 }, begin.write),
      revision: begin.revision,
      statusSeen: begin.status,
      kind,
      isMove: migrationOf(begin) !== null,
      sourceHost: operation.source?.host ?? null,
      sourceAttemptId: operation.source?.attemptId ?? null,
      refused:
        astray.get(server.uuid)?.broken ??
        evacuations.get(at) ??
        astray.get(server.uuid)?.quarantined ??
        (conflict ? describeGroupConflict(conflict) : null),
    };
  });
  const packed = packBytes(begins.map(({ task }) => encodeOnce(Task, task)));
  const rows = await queryRows<AnswerRow & { readonly xid: number | string }>(client, {
    name: "cell_begin",
    text: "select at, outcome, detail, xid from cell_begin($1, $2, $3, $4, $5)",
    values: [
      JSON.stringify(records),
      packed.bytes,
      arrayLiteral(packed.starts),
      arrayLiteral(packed.lengths),
      encodeChanges(changes),
    ],
  });
  const outcomes: BeginOutcome[] = [];
  for (const row of rows) {
    const inFlight = conflicts.get(row.at - 1)?.inFlight ?? false;
    const change = changes[row.at - 1] as AllocationChange;
    outcomes[row.at - 1] = beginOutcome({ ...row, inFlight }, change, evacuations.get(row.at - 1));
  }
  return outcomes;
}

function beginOutcome(
  row: AnswerRow & { readonly xid: number | string; readonly inFlight: boolean },
  change: AllocationChange,
  evacuation: EvacuationRefusal | undefined,
): BeginOutcome {
  switch (row.outcome) {
    case "begun":
      return { kind: "begun", xid: Number(row.xid) };
    case "already-begun":
    case "closed":
    case "changed":
    case "gone":
      return { kind: row.outcome };
    case "busy":
      return { kind: "busy", running: String(row.detail?.running) };
    case "refused":
      if (evacuation !== undefined && row.detail?.why === evacuation) return { kind: evacuation };
      if (row.detail?.why === GUEST_IN_QUARANTINE) return { kind: "quarantined" };
      return { kind: "refused", why: String(row.detail?.why), inFlight: row.inFlight };
    default: {
      const outcome = refusalOf(row, change);
      return outcome.kind === "no-capacity" ? outcome : { kind: "stale", why: describeAllocationRefusal(outcome) };
    }
  }
}

/** Cost: three round trips (a transaction), and a fourth where a server is in a group. */
export function commitSteps(pool: Pool, steps: readonly OperationStep[]): Promise<readonly StepOutcome[]> {
  return inRounds(
    steps,
    (step) => step.serverUuid,
    (round) => runStored("cell_commit_steps", () => inTransaction(pool, (client) => stepRound(client, round))),
    (one, round) => round.some((other) => groupsEntangle(claimOfStep(other), claimOfStep(one))),
  );
}

async function stepRound(client: PoolClient, steps: readonly OperationStep[]): Promise<readonly StepOutcome[]> {
  const conflicts = await joinGroups(client, steps.map(claimOfStep));
  const evacuations = await checkEvacuations(client, steps);
  const quarantined = await readStartedBeside(client, steps);
  const changes = steps.map((step) => changeOf(step.taskId, step));
  const records = steps.map((step, at) => {
    const [conflict, evacuation] = [conflicts.get(at), evacuations.get(at)];
    const unfenced = evacuation && describeEvacuationRefusal(evacuation, step.evacuated?.host ?? "");
    const beside = quarantined.has(step.serverUuid) ? GUEST_IN_QUARANTINE : null;
    const refused = unfenced ?? beside ?? (conflict ? describeGroupConflict(conflict) : null);
    return { ...recordOf(step, step), refused };
  });
  const rows = await queryRows<AnswerRow & { readonly revision: number }>(client, {
    name: "cell_commit_steps",
    text: "select at, outcome, detail, revision from cell_commit_steps($1, $2, $3, $4, $5)",
    values: [
      JSON.stringify(records),
      textArrayLiteral(steps.map((step) => step.taskId)),
      textArrayLiteral(steps.map((step) => step.serverUuid)),
      arrayLiteral(steps.map((step) => step.epoch)),
      encodeChanges(changes),
    ],
  });
  const outcomes = new Array<StepOutcome>(steps.length).fill({ kind: "fenced" });
  for (const row of rows) outcomes[row.at - 1] = stepOutcome(row, changes[row.at - 1] as AllocationChange);
  return outcomes;
}

/** Servers of which a step starts a guest although another one, which may run, is in quarantine. */
async function readStartedBeside(client: PoolClient, steps: readonly OperationStep[]): Promise<ReadonlySet<string>> {
  const starts = steps.flatMap(({ serverUuid, startsAttempt: attemptId }) =>
    attemptId === undefined ? [] : { serverUuid, attemptId },
  );
  if (starts.length === 0) return new Set();
  const isBeside = await lookForOthersInQuarantine(client, starts);
  return new Set(starts.flatMap(({ serverUuid }, at) => (isBeside[at] ? serverUuid : [])));
}

function stepOutcome(row: AnswerRow & { readonly revision: number }, change: AllocationChange): StepOutcome {
  switch (row.outcome) {
    case "committed":
    case "repeated":
      return { kind: "committed", revision: row.revision };
    case "refused":
      return { kind: "refused", why: String(row.detail?.why) };
    default:
      return { kind: "refused", why: describeAllocationRefusal(refusalOf(row, change)) };
  }
}

function refusalOf(row: AnswerRow, change: AllocationChange): Exclude<AllocationOutcome, { kind: "committed" }> {
  const outcome = decodeOutcome(change, {
    kind: row.outcome as AllocationOutcome["kind"],
    generations: null,
    detail: row.detail,
  });
  assert(outcome.kind !== "committed", "a committed change is no refusal");
  return outcome;
}

/** A step in the form that `cell_write_step` reads. Absent fields stay unchanged in the database. */
function recordOf(
  at: { readonly taskId: string; readonly serverUuid: string; readonly step: number },
  write: StepWrite,
): Record<string, unknown> {
  const { status, taskState, home, spec, fault, uncertain } = write.server;
  return {
    taskId: at.taskId,
    serverUuid: at.serverUuid,
    step: at.step,
    stage: write.stage,
    outcome: write.outcome,
    selection: write.selection,
    reason: write.reason,
    ...(status === undefined ? {} : { status }),
    taskState,
    ...(home === undefined ? {} : { host: home?.host ?? null, attemptId: home?.attemptId ?? null }),
    ...(spec === undefined ? {} : { spec: Buffer.from(encodeMessage(ServerSpec, spec)).toString("base64") }),
    ...(fault === undefined ? {} : { fault }),
    ...(uncertain === undefined ? {} : { uncertain }),
    migration: write.migration,
    attempts: write.attempts,
    leftover: write.leftover ?? null,
  };
}

function claimOfBegin({ task, write }: BeginOperation): GroupedClaim {
  return groupedClaim(operationOf(task).server.uuid, write);
}

function claimOfStep(step: OperationStep): GroupedClaim {
  return groupedClaim(step.serverUuid, step);
}

function groupedClaim(serverUuid: string, { group }: StepWrite): GroupedClaim {
  return { serverUuid, group: group?.membership, host: group?.toHost ?? "" };
}

export async function readPositions(pool: Pool, taskIds: readonly string[]): Promise<readonly OperationPosition[]> {
  const rows = await queryStored<{
    id: string;
    stage: string | null;
    step: number;
    selection: number;
    signal: OperationSignal | null;
    reason: string;
    revision: number;
  }>(pool, {
    name: "operation_positions",
    text: `select t.id, t.stage, t.step, t.selection, t.signal, t.reason, s.revision
      from tasks t join servers s on s.uuid = t.server_uuid where t.id = any ($1) and t.kind = 'operate'`,
    values: [textArrayLiteral(onlyUuids(taskIds))],
  });
  const byId = new Map(rows.map(({ id, stage, ...row }) => [id, { taskId: id, stage: stage ?? "", ...row }]));
  return taskIds.map((id) => byId.get(id)).filter((position) => position !== undefined);
}

/**
 * Releases each open operation that still accepts the signal, under a new epoch. A conductor that is about to write the next stage is
 * either fenced, or was faster, in which case its stage is seen here. Cost: one round trip.
 */
export async function signalOperations(
  pool: Pool,
  signals: readonly { readonly taskId: string; readonly signal: OperationSignal }[],
): Promise<readonly SignalOutcome[]> {
  const named = [...new Map(signals.map((one) => [one.taskId, one])).values()];
  const rows = await queryStored<{ id: string; done: boolean }>(pool, {
    name: "signal_operations",
    text: `with wanted as (
        select * from unnest($1::uuid[], $2::text[], $3::text[]) as w (id, signal, stages)
      ), done as (
        update tasks t set signal = w.signal, epoch = t.epoch + 1, owner = null
        from wanted w
        where t.id = w.id and t.kind = 'operate' and t.ended_at is null and t.stage = any (string_to_array(w.stages, ' '))
          and not (w.signal = 'force' and coalesce(t.signal, '') = 'abort')
        returning t.id
      )
      select t.id, t.id in (select d.id from done d) as done
      from wanted w join tasks t on t.id = w.id and t.kind = 'operate' and t.ended_at is null`,
    values: [
      textArrayLiteral(named.map((one) => one.taskId)),
      textArrayLiteral(named.map((one) => one.signal)),
      textArrayLiteral(named.map((one) => HEARD_AT[one.signal].join(" "))),
    ],
  });
  const byId = new Map(rows.map((row) => [row.id, row.done ? ("signalled" as const) : ("too-late" as const)]));
  return signals.map(({ taskId }) => byId.get(taskId) ?? "no-such-operation");
}
