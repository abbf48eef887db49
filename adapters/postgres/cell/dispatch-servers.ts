import type { Pool } from "pg";
import { assert } from "../../../core/assert.ts";
import type { AllocationChange, AllocationOutcome } from "../../../core/ledger/allocation-change.ts";
import { describeAllocationRefusal } from "../../../core/ledger/describe-allocation-refusal.ts";
import type { CloseOutcome, Closing, Dispatch, DispatchOutcome } from "../../../core/stores/cell/cell-store.ts";
import { groupsEntangle, isHardGroup } from "../../../core/tasks/group-rule.ts";
import { attemptIdOf } from "../../../core/tasks/server.ts";
import { Task } from "../../../proto/gen/berth/cell.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { encodeOnce } from "../../../runtime/encode-once.ts";
import { inRounds } from "../client/in-rounds.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { packBytes } from "../client/pack-bytes.ts";
import { refusedWrite, runStored } from "../client/run-stored.ts";
import { queryRows, queryStored, type StoreQuery } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { decodeOutcome, encodeChanges } from "../ledger/encode-changes.ts";
import { type GroupedClaim, joinGroups, withheld } from "./join-groups.ts";

interface DispatchRow {
  readonly at: number;
  readonly outcome: "dispatched" | "already-dispatched" | "closed" | "quarantined" | AllocationOutcome["kind"];
  readonly detail: Readonly<Record<string, unknown>> | null;
  readonly xid: number | string;
}

/**
 * Writes claims, servers, tasks and first attempts of a batch. Cost: one round trip, and one more when a request has been assigned before, so
 * that it may come back to a cell that it has left. If the cell was left again in between, under an earlier assignment, the dispatch is repeated once.
 */
export async function dispatchServers(
  pool: Pool,
  dispatches: readonly Dispatch[],
): Promise<readonly DispatchOutcome[]> {
  const refused = await orRefused(dispatches, async () => {
    await reopen(pool, dispatches);
    return null;
  });
  if (refused !== null) return refused;
  const outcomes = await dispatchOpened(pool, dispatches);
  const closed = dispatches.filter(({ assignment = 0 }, at) => assignment > 0 && outcomes[at]?.kind === "closed");
  // A slow scheduler may have left the cell under an earlier assignment after the cell was opened. Such a mark does not hold for this one.
  const opened = new Set(await reopen(pool, closed));
  const again = closed.filter(({ task }) => opened.has(specOf(task).uuid.toLowerCase()));
  if (again.length === 0) return outcomes;
  const later = await dispatchOpened(pool, again);
  return dispatches.map((dispatch, at) => {
    const outcome = later[again.indexOf(dispatch)] ?? outcomes[at];
    assert(outcome !== undefined, `an outcome of dispatch ${at}`);
    return outcome;
  });
}

function dispatchOpened(pool: Pool, dispatches: readonly Dispatch[]): Promise<readonly DispatchOutcome[]> {
  return inRounds(
    dispatches,
    (dispatch) => specOf(dispatch.task).uuid,
    (round) => orRefused(round, () => (round.some(isGrouped) ? dispatchGrouped : dispatchRound)(pool, round)),
    (dispatch, round) =>
      isGrouped(dispatch) && round.some((other) => groupsEntangle(claimOf(other), claimOf(dispatch))),
  );
}

/**
 * Runs one transaction for these dispatches. If the database refused it and certainly wrote nothing, each of them is answered so, because
 * other rounds of the same batch may have been committed.
 */
async function orRefused<Result>(
  dispatches: readonly Dispatch[],
  run: () => Promise<Result>,
): Promise<Result | readonly DispatchOutcome[]> {
  try {
    return await run();
  } catch (error) {
    const why = refusedWrite(error);
    if (why === null) throw error;
    return dispatches.map(() => ({ kind: "write-refused", why }));
  }
}

/**
 * Opens the cell to servers that left it under an earlier assignment. This need not be one transaction with the dispatch. If a claim of an
 * earlier assignment comes in between, it is valid, too, since the request is assigned to this cell again. If it has left the cell once more,
 * the cell is closed under the present assignment, too, and stays so. Returns the UUIDs of the servers that were closed until now.
 */
async function reopen(pool: Pool, dispatches: readonly Dispatch[]): Promise<readonly string[]> {
  const again = dispatches.filter(({ assignment = 0 }) => assignment > 0);
  if (again.length === 0) return [];
  const rows = await queryStored<{ uuid: string }>(pool, {
    name: "cell_reopen",
    text: `with left_before as (
        select s.uuid from servers s join unnest($1::uuid[], $2::int[]) as w (uuid, assignment) on s.uuid = w.uuid
        where s.status = 'CLOSED' and s.revision < w.assignment
        order by s.uuid for update of s
      )
      delete from servers s using left_before l where s.uuid = l.uuid returning s.uuid`,
    values: [
      textArrayLiteral(again.map(({ task }) => specOf(task).uuid)),
      arrayLiteral(again.map(({ assignment = 0 }) => assignment)),
    ],
  });
  return rows.map(({ uuid }) => uuid);
}

/** For batches with servers of groups whose rules the claims must keep. Cost: four round trips, under the groups' locks. */
function dispatchGrouped(pool: Pool, dispatches: readonly Dispatch[]): Promise<readonly DispatchOutcome[]> {
  return runStored("cell_dispatch", () =>
    inTransaction(pool, async (client) => {
      const conflicts = await joinGroups(client, dispatches.map(claimOf));
      const allowed = dispatches.map((dispatch, at) =>
        conflicts.has(at) ? { ...dispatch, change: withheld(dispatch.change) } : dispatch,
      );
      const outcomes = outcomesOf(await queryRows<DispatchRow>(client, dispatchQuery(allowed)), allowed);
      return outcomes.map((outcome, at) => {
        return BEFORE_GROUPS.includes(outcome.kind) ? outcome : (conflicts.get(at) ?? outcome);
      });
    }),
  );
}

/** Outcomes that do not depend on the server's group. */
const BEFORE_GROUPS: readonly DispatchOutcome["kind"][] = ["already-dispatched", "closed", "quarantined"];

async function dispatchRound(pool: Pool, dispatches: readonly Dispatch[]): Promise<readonly DispatchOutcome[]> {
  return outcomesOf(await queryStored<DispatchRow>(pool, dispatchQuery(dispatches)), dispatches);
}

function dispatchQuery(dispatches: readonly Dispatch[]): StoreQuery {
  const tasks = dispatches.map((dispatch) => dispatch.task);
  const specs = tasks.map(specOf);
  // The spec and payload of each task in turn: even parts are specs, odd ones payloads.
  const packed = packBytes(tasks.flatMap((task, at) => [encodeSpec(specs[at]), encodeOnce(Task, task)]));
  const isSpec = (_: number, at: number): boolean => at % 2 === 0;
  const isPayload = (_: number, at: number): boolean => at % 2 === 1;
  return {
    name: "cell_dispatch",
    text: "select at, outcome, detail, xid from cell_dispatch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    values: [
      textArrayLiteral(specs.map((spec) => spec.uuid)),
      textArrayLiteral(specs.map((spec) => spec.name)),
      textArrayLiteral(specs.map((spec) => spec.projectId)),
      textArrayLiteral(specs.map((spec) => spec.userId)),
      arrayLiteral(specs.map((spec) => spec.createdAtMs)),
      textArrayLiteral(tasks.map(hostOf)),
      textArrayLiteral(tasks.map((task) => attemptIdOf(task.id, 0))),
      textArrayLiteral(tasks.map((task) => task.id)),
      packed.bytes,
      arrayLiteral(packed.starts.filter(isSpec)),
      arrayLiteral(packed.lengths.filter(isSpec)),
      arrayLiteral(packed.starts.filter(isPayload)),
      arrayLiteral(packed.lengths.filter(isPayload)),
      encodeChanges(dispatches.map((dispatch) => dispatch.change)),
    ],
  };
}

function outcomesOf(rows: readonly DispatchRow[], dispatches: readonly Dispatch[]): readonly DispatchOutcome[] {
  const outcomes: DispatchOutcome[] = [];
  for (const row of rows) {
    const dispatch = dispatches[row.at - 1];
    assert(dispatch !== undefined, `an answer for dispatch ${row.at} of ${dispatches.length}`);
    outcomes[row.at - 1] = outcomeOf(row, dispatch.change);
  }
  return outcomes;
}

function outcomeOf({ outcome: kind, detail, xid }: DispatchRow, change: AllocationChange): DispatchOutcome {
  if (kind === "dispatched") return { kind, xid: Number(xid) };
  if (kind === "already-dispatched" || kind === "closed" || kind === "quarantined") return { kind };
  const outcome = decodeOutcome(change, { kind, generations: null, detail });
  assert(outcome.kind !== "committed", "a committed claim is dispatched");
  if (outcome.kind === "no-capacity") return outcome;
  const why = describeAllocationRefusal(outcome);
  return outcome.kind === "consumer-conflict" ? { kind: "consumer-taken", why } : { kind: "stale", why };
}

const isGrouped = (dispatch: Dispatch): boolean => isHardGroup(dispatch.task.server?.group);

function claimOf({ task }: Dispatch): GroupedClaim {
  const { uuid, group } = specOf(task);
  return { serverUuid: uuid, group, host: hostOf(task) };
}

function specOf(task: Task): ServerSpec {
  assert(task.server !== undefined, `task ${task.id} is of no server`);
  return task.server;
}

function hostOf(task: Task): string {
  const host = task.work?.$case === "build" ? task.work.value.selections[0]?.host : undefined;
  assert(host !== undefined, `task ${task.id} builds nothing`);
  return host;
}

function encodeSpec(spec: ServerSpec | undefined): Uint8Array {
  assert(spec !== undefined, "a spec for each task");
  return encodeOnce(ServerSpec, spec);
}

/** Marks the UUIDs of absent servers as closed, so that they cannot be dispatched here later under these assignments. */
export function closeServers(pool: Pool, closings: readonly Closing[]): Promise<readonly CloseOutcome[]> {
  return inRounds(
    closings,
    ({ serverUuid }) => serverUuid,
    async (round) => {
      const rows = await queryStored<{ at: number; present: boolean; quarantined: boolean }>(pool, {
        name: "cell_leave",
        text: `select l.at, l.present, exists (
            select from quarantined_guests q where q.server_uuid = ($1::uuid[])[l.at]::text and q.holds and not q.condemned
          ) as quarantined
          from cell_leave($1, $2) l`,
        values: [
          textArrayLiteral(round.map(({ serverUuid }) => serverUuid)),
          arrayLiteral(round.map(({ assignment }) => assignment)),
        ],
      });
      const answers: CloseOutcome[] = [];
      for (const { at, present, quarantined } of rows)
        answers[at - 1] = present ? "present" : quarantined ? "quarantined" : "closed";
      return answers;
    },
  );
}
