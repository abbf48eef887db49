import type { Pool } from "pg";
import { assert } from "../../../core/assert.ts";
import type {
  AcceptOutcome,
  AssignCell,
  AssignOutcome,
  Deletion,
  RequestFailure,
  RequestRecord,
  RequestState,
} from "../../../core/stores/api/api-store.ts";
import { StoreError } from "../../../core/stores/store-error.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { encodeOnce } from "../../../runtime/encode-once.ts";
import { inRounds } from "../client/in-rounds.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { packBytes } from "../client/pack-bytes.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";
import { REQUEST_COLUMNS, type RequestRow, readRequests, requestOf } from "./read-requests.ts";

// Lock order, everywhere: requests by UUID, then their rows in `open_requests`, which triggers write. A statement that locks rows in a CTE
// and then updates them uses the locked version of each row, whatever its snapshot shows.

/**
 * The statement that inserts requests. Its first parameters are those of `acceptedValues`; `calls` and `changes` name the parameters with the
 * call of each request, of which those that were refused are left out, and with the tags, which most requests do not have.
 */
function insertRequests({ calls, changes }: { readonly calls?: string; readonly changes?: string }): string {
  const also = (text: string, wanted: string | undefined) => (wanted === undefined ? "" : text);
  return `insert into requests (server_uuid, state, spec, project_id, user_id, name, created_at${also(", changes", changes)})
  select w.uuid, 'accepted', substring($1::bytea from w.start for w.length), w.project_id, w.user_id, w.name,
    to_timestamp(w.created_at_ms / 1000)${also(", w.changes::jsonb", changes)}
  from unnest($2::int[], $3::int[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::float8[]${also(`, ${calls}::int[]`, calls)}${also(`, ${changes}::text[]`, changes)})
    as w (start, length, uuid, project_id, user_id, name, created_at_ms${also(", call", calls)}${also(", changes", changes)})
  ${also("where not exists (select from refused where refused_call = w.call)", calls)}
  order by w.uuid`;
}

/** Inserts only the calls that `calls_beyond_limit` does not return. That function decides before any row is inserted. */
const insertWithinLimit = (changes: string | undefined, onConflict: string) => `with refused as materialized (
    select refused_call, open_already from calls_beyond_limit($4::uuid[], $5::text[], $9::int[], $10::int)
  ), added as (
    ${insertRequests({ calls: "$9", ...(changes !== undefined && { changes }) })} ${onConflict}
  )
  select refused_call, open_already from refused`;

/**
 * The first try inserts without `on conflict`, which would cost a look-up and a log record for each row. A conflict only happens after a
 * lost answer, so only the second try has the clause. Cost: one round trip, one row for each request.
 */
export async function acceptRequests(pool: Pool, specs: readonly ServerSpec[]): Promise<void> {
  if (specs.length === 0) return;
  const tags = tagsOf(specs);
  const values = [...acceptedValues(specs), ...tags];
  const text = insertRequests(tags.length > 0 ? { changes: "$9" } : {});
  const name = tags.length > 0 ? "accept_tagged" : "accept_requests";
  await insertTwiceAtMost(
    () => queryStored(pool, { name, text, values }),
    () => queryStored(pool, { name: `${name}_again`, text: `${text} on conflict do nothing`, values }),
  );
}

/**
 * Lock order: first the keys of the projects, then as everywhere. Cost: one round trip, one row for each request, and a look at each open
 * request of the projects. Calls of one project wait for each other's commits.
 */
export async function acceptWithinLimit(
  pool: Pool,
  calls: readonly (readonly ServerSpec[])[],
  openMax: number,
): Promise<readonly AcceptOutcome[]> {
  const specs = calls.flat();
  if (specs.length === 0) return calls.map(() => ({ kind: "accepted" }));
  const numbers = calls.flatMap((call, index) => call.map(() => index));
  const tags = tagsOf(specs);
  const values = [...acceptedValues(specs), arrayLiteral(numbers), openMax, ...tags];
  const [changes, name] = tags.length > 0 ? ["$11", "accept_tagged_in_limit"] : [undefined, "accept_in_limit"];
  type RefusedRow = { readonly refused_call: number; readonly open_already: number };
  const rows = await insertTwiceAtMost(
    () => queryStored<RefusedRow>(pool, { name, text: insertWithinLimit(changes, ""), values }),
    () =>
      queryStored<RefusedRow>(pool, {
        name: `${name}_again`,
        text: insertWithinLimit(changes, "on conflict do nothing"),
        values,
      }),
  );
  const refused = new Map(rows.map((row) => [row.refused_call, row.open_already]));
  return calls.map((_, index) => {
    const open = refused.get(index);
    return open === undefined ? { kind: "accepted" } : { kind: "over-limit", open };
  });
}

function acceptedValues(specs: readonly ServerSpec[]): readonly unknown[] {
  const packed = packBytes(specs.map((spec) => encodeOnce(ServerSpec, spec)));
  return [
    packed.bytes,
    arrayLiteral(packed.starts),
    arrayLiteral(packed.lengths),
    textArrayLiteral(specs.map((spec) => spec.uuid)),
    textArrayLiteral(specs.map((spec) => spec.projectId)),
    textArrayLiteral(specs.map((spec) => spec.userId)),
    textArrayLiteral(specs.map((spec) => spec.name)),
    arrayLiteral(specs.map((spec) => spec.createdAtMs)),
  ];
}

/** The parameter with the tags of the servers, or nothing when no server has any. */
function tagsOf(specs: readonly ServerSpec[]): readonly string[] {
  if (specs.every(({ tags }) => tags.length === 0)) return [];
  return [textArrayLiteral(specs.map(({ tags }) => (tags.length === 0 ? null : JSON.stringify({ tags }))))];
}

/** Runs `again` when `insert` fails because some rows exist already. */
async function insertTwiceAtMost<Result>(insert: () => Promise<Result>, again: () => Promise<Result>): Promise<Result> {
  try {
    return await insert();
  } catch (error) {
    if (!isKnownAlready(error)) throw error;
    return again();
  }
}

function isKnownAlready(error: unknown): boolean {
  return error instanceof StoreError && (error.cause as { readonly code?: unknown } | null)?.code === "23505";
}

interface AssignRow {
  readonly at: number;
  readonly state: RequestState | null;
  readonly cell: string | null;
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
        select * from unnest($1::uuid[], $2::text[], $3::text[]) with ordinality as w (uuid, from_cell, to_cell, at)
      ), locked as (
        select server_uuid, state, cell from requests where server_uuid = any ($1)
        order by server_uuid for no key update
      ), assigned as (
        update requests r set state = 'dispatched', cell = w.to_cell, updated_at = now(),
          arrived = r.arrived and w.to_cell is not distinct from w.from_cell
        from wanted w join locked l on l.server_uuid = w.uuid
        where r.server_uuid = w.uuid and l.state in ('accepted', 'dispatched') and l.cell is not distinct from w.from_cell
        returning r.server_uuid
      )
      select w.at::int, l.state, l.cell, a.server_uuid is not null as assigned
      from wanted w
      left join locked l on l.server_uuid = w.uuid
      left join assigned a on a.server_uuid = w.uuid`,
    values: [
      textArrayLiteral(assignments.map((assignment) => assignment.serverUuid)),
      textArrayLiteral(assignments.map((assignment) => assignment.from)),
      textArrayLiteral(assignments.map((assignment) => assignment.to)),
    ],
  });
  const outcomes: AssignOutcome[] = [];
  for (const row of rows) outcomes[row.at - 1] = outcomeOf(row);
  assert(outcomes.length === assignments.length, "an answer for each assignment");
  return outcomes;
}

function outcomeOf({ state, cell, assigned }: AssignRow): AssignOutcome {
  if (assigned) return { kind: "assigned" };
  return state === "accepted" || state === "dispatched" ? { kind: "moved", cell } : { kind: "ended" };
}

export async function failRequests(pool: Pool, failures: readonly RequestFailure[]): Promise<void> {
  await inRounds(
    failures,
    (failure) => failure.serverUuid,
    async (round) => {
      await queryStored(pool, {
        name: "fail_requests",
        text: `with locked as (
            select server_uuid, state, cell from requests where server_uuid = any ($1)
            order by server_uuid for no key update
          )
          update requests r set state = 'failed', fault = w.fault, updated_at = now()
          from unnest($1::uuid[], $2::text[], $3::text[]) as w (uuid, cell, fault)
          join locked l on l.server_uuid = w.uuid
          where r.server_uuid = w.uuid and l.state in ('accepted', 'dispatched') and l.cell is not distinct from w.cell`,
        values: [
          textArrayLiteral(round.map((failure) => failure.serverUuid)),
          textArrayLiteral(round.map((failure) => failure.cell)),
          textArrayLiteral(round.map((failure) => failure.fault)),
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
        select server_uuid, state from requests where server_uuid = any ($1) order by server_uuid for no key update
      )
      update requests r
      set state = case l.state when 'failed' then 'deleted' else 'cancelled' end, cancel_request_id = w.request_id,
        cancelled_at = now(), updated_at = now(), gone = true
      from unnest($1::uuid[], $2::text[]) as w (uuid, request_id)
      join locked l on l.server_uuid = w.uuid
      where r.server_uuid = w.uuid and l.state in ('accepted', 'dispatched', 'failed')
      returning ${REQUEST_COLUMNS.replace(/^server_uuid, state,/, "r.server_uuid, r.state,")}`,
    values: [
      textArrayLiteral(round.map((cancellation) => cancellation.serverUuid)),
      textArrayLiteral(round.map((cancellation) => cancellation.requestId)),
    ],
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
