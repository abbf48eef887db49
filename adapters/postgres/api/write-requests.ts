import type { Pool } from "pg";
import { assert } from "../../../core/assert.ts";
import type {
  AssignCell,
  AssignOutcome,
  Deletion,
  RequestFailure,
  RequestRecord,
  RequestState,
} from "../../../core/stores/api/api-store.ts";
import { nextAssignment } from "../../../core/stores/api/next-assignment.ts";
import { inRounds } from "../client/in-rounds.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";
import { CLASSES_ASIDE, countClasses, countUsage } from "./count-usage.ts";
import { REQUEST_COLUMNS, type RequestRow, readRequests, requestOf } from "./read-requests.ts";

// Lock order, everywhere: requests by UUID, then `quota_usages` by project and user, then `quota_class_usages` by project and class, then `soft_deletions`, then the rows in `open_requests`, which triggers write. A
// statement that locks rows in a CTE and then updates them uses the locked version of each row, whatever its snapshot shows.

interface AssignRow {
  readonly at: number;
  readonly state: RequestState | null;
  readonly cell: string | null;
  readonly assignment: number;
  readonly assigned: boolean;
}

/** Cost: one round trip, one update for each request. */
export function assignCells(pool: Pool, assignments: readonly AssignCell[]): Promise<readonly AssignOutcome[]> {
  return inRounds(
    assignments,
    (assignment) => assignment.serverUuid,
    (round) => assignRound(pool, round),
  );
}

async function assignRound(pool: Pool, assignments: readonly AssignCell[]): Promise<readonly AssignOutcome[]> {
  const rows = await queryStored<AssignRow>(pool, {
    name: "assign_cells",
    text: `with wanted as (
        select * from unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::int[])
          with ordinality as w (uuid, from_cell, to_cell, assignment, next, at)
      ), locked as (
        select server_uuid, state, cell, assignment from requests where server_uuid = any ($1)
        order by server_uuid for no key update
      ), assigned as (
        update requests r set state = 'dispatched', cell = w.to_cell, updated_at = now(),
          arrived = r.arrived and w.to_cell is not distinct from w.from_cell,
          assignment = w.next
        from wanted w join locked l on l.server_uuid = w.uuid
        where r.server_uuid = w.uuid and l.state in ('accepted', 'dispatched') and l.cell is not distinct from w.from_cell
          and l.assignment = w.assignment
        returning r.server_uuid
      )
      select w.at::int, l.state, l.cell, l.assignment, a.server_uuid is not null as assigned
      from wanted w
      left join locked l on l.server_uuid = w.uuid
      left join assigned a on a.server_uuid = w.uuid`,
    values: [
      textArrayLiteral(assignments.map((assignment) => assignment.serverUuid)),
      textArrayLiteral(assignments.map((assignment) => assignment.from)),
      textArrayLiteral(assignments.map((assignment) => assignment.to)),
      arrayLiteral(assignments.map(({ assignment = 0 }) => assignment)),
      arrayLiteral(assignments.map(nextAssignment)),
    ],
  });
  const outcomes: AssignOutcome[] = [];
  for (const row of rows) outcomes[row.at - 1] = outcomeOf(row);
  assert(outcomes.length === assignments.length, "an answer for each assignment");
  return outcomes;
}

function outcomeOf({ state, cell, assignment, assigned }: AssignRow): AssignOutcome {
  if (assigned) return { kind: "assigned" };
  return state === "accepted" || state === "dispatched" ? { kind: "moved", cell, assignment } : { kind: "ended" };
}

export async function failRequests(pool: Pool, failures: readonly RequestFailure[]): Promise<void> {
  await inRounds(
    failures,
    (failure) => failure.serverUuid,
    async (round) => {
      await queryStored(pool, {
        name: "fail_requests",
        text: `with locked as (
            select server_uuid, state, cell, assignment from requests where server_uuid = any ($1)
            order by server_uuid for no key update
          )
          update requests r set state = 'failed', fault = w.fault, updated_at = now()
          from unnest($1::uuid[], $2::text[], $3::text[], $4::int[]) as w (uuid, cell, fault, assignment)
          join locked l on l.server_uuid = w.uuid
          where r.server_uuid = w.uuid and l.state in ('accepted', 'dispatched') and l.cell is not distinct from w.cell
            and l.assignment = w.assignment`,
        values: [
          textArrayLiteral(round.map((failure) => failure.serverUuid)),
          textArrayLiteral(round.map((failure) => failure.cell)),
          textArrayLiteral(round.map((failure) => failure.fault)),
          arrayLiteral(round.map(({ assignment = 0 }) => assignment)),
        ],
      });
      return round;
    },
  );
}

/** A call that cancels a request. */
export interface Cancellation {
  readonly serverUuid: string;
  readonly requestId: string;
}

/** Cancels the requests in one round trip, or more when some were cancelled before. Answers null for requests that are unknown or gone. */
export function cancelRequests(
  pool: Pool,
  cancellations: readonly Cancellation[],
): Promise<readonly (RequestRecord | null)[]> {
  return inRounds(
    cancellations,
    (cancellation) => cancellation.serverUuid.toLowerCase(),
    (round) => cancelRound(pool, round),
  );
}

async function cancelRound(pool: Pool, round: readonly Cancellation[]): Promise<readonly (RequestRecord | null)[]> {
  const cancelled = await queryStored<RequestRow>(pool, {
    name: "cancel_requests",
    text: `with locked as (
        select server_uuid, state, gone as was_gone from requests where server_uuid = any ($1) order by server_uuid for no key update
      ), cancelled as (
        update requests r
        set state = case l.state when 'failed' then 'deleted' else 'cancelled' end, cancel_request_id = w.request_id,
          cancelled_at = now(), updated_at = now(), gone = true, ${CLASSES_ASIDE}
        from unnest($1::uuid[], $2::text[]) as w (uuid, request_id)
        join locked l on l.server_uuid = w.uuid
        where r.server_uuid = w.uuid and l.state in ('accepted', 'dispatched', 'failed')
        returning r.*, l.was_gone
      ), listed as (
        select * from cancelled where not was_gone
      ), ${countUsage("given_back", "listed", -1)}, ${countClasses("classes_given_back", "listed", -1)}, forgotten as (
        delete from soft_deletions d using cancelled c where c.was_gone and d.server_uuid = c.server_uuid
      )
      select ${REQUEST_COLUMNS} from cancelled`,
    values: [
      textArrayLiteral(round.map((cancellation) => cancellation.serverUuid)),
      textArrayLiteral(round.map((cancellation) => cancellation.requestId)),
    ],
    isBytesAsText: true,
  });
  const byUuid = new Map(cancelled.map((row) => [row.server_uuid, requestOf(row)]));
  const others = round.filter(({ serverUuid }) => !byUuid.has(serverUuid.toLowerCase()));
  if (others.length > 0) {
    const before = await readRequests(
      pool,
      others.map(({ serverUuid }) => serverUuid),
    );
    for (const record of before) if (record.state === "cancelled") byUuid.set(record.serverUuid, record);
  }
  return round.map(({ serverUuid }) => byUuid.get(serverUuid.toLowerCase()) ?? null);
}

/** Cost: one round trip, one row for each request. */
export async function markDeleted(pool: Pool, deletions: readonly Deletion[]): Promise<void> {
  const known = deletions.filter(({ serverUuid }) => onlyUuids([serverUuid]).length > 0);
  if (known.length === 0) return;
  await queryStored(pool, {
    name: "mark_deleted",
    text: `with locked as (
        select r.server_uuid from unnest($1::uuid[], $2::text[]) as w (uuid, by_cell) join requests r on r.server_uuid = w.uuid
        where r.state = 'cancelled' and (r.cell is null or r.cell = w.by_cell)
        order by r.server_uuid for no key update of r
      )
      update requests r set state = 'deleted', updated_at = now(), gone = true from locked where r.server_uuid = locked.server_uuid`,
    values: [
      textArrayLiteral(known.map(({ serverUuid }) => serverUuid)),
      textArrayLiteral(known.map(({ cell }) => cell)),
    ],
  });
}
