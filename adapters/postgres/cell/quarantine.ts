import type { Pool, PoolClient } from "pg";
import {
  type DoomedGuest,
  type GuestVerdict,
  mayBeForgotten,
  QUARANTINE_DISABLES,
  type QuarantinedGuest,
  quarantineReason,
  type UncertainServer,
} from "../../../core/stores/cell/quarantine.ts";
import { parseAttemptId } from "../../../core/tasks/attempt-id.ts";
import { isStartKnown, type StartRecord } from "../../../core/tasks/known-start.ts";
import type { AttemptResult } from "../../../core/tasks/server.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { runStored } from "../client/run-stored.ts";
import { onlyUuids, queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { stagesOf } from "./read-tasks.ts";

export async function readIncarnation(pool: Pool): Promise<string> {
  const rows = await queryStored<{ incarnation: string }>(pool, {
    name: "incarnation",
    text: "select cell_incarnation() as incarnation",
    values: [],
  });
  return rows[0]?.incarnation ?? "";
}

interface KnownRow {
  readonly at: number;
  readonly revision: number | null;
  readonly status: StartRecord["status"] | null;
  /** The kind of the task that made the guest, if that task has reached the guest's attempt. Otherwise null. */
  readonly kind: "build" | "delete" | "operate" | null;
  readonly stages: readonly string[] | null;
  readonly has_attempt: boolean;
  readonly result: AttemptResult | null;
  readonly condemned: boolean | null;
  readonly incarnation: string;
  /** Whether the host was compared with this incarnation before. */
  readonly was_compared: boolean;
  /** Whether a guest of the server was ever to be on the host. */
  readonly was_there: boolean;
}

/** Cost: three round trips (a transaction), and two more where a guest is kept. */
export function judgeGuests(pool: Pool, guests: readonly DoomedGuest[]): Promise<readonly GuestVerdict[]> {
  return runStored("judge_guests", () => inTransaction(pool, (client) => judge(client, guests)));
}

async function judge(client: PoolClient, guests: readonly DoomedGuest[]): Promise<readonly GuestVerdict[]> {
  const attempts = guests.map(({ attemptId }) => parseAttemptId(attemptId));
  const rows = await queryRows<KnownRow>(client, {
    name: "known_of_guests",
    text: `select w.at::int, s.revision, s.status, t.kind, t.stages, a.task_id is not null as has_attempt, a.result, q.condemned,
        cell_incarnation() as incarnation,
        exists (select from compared_hosts c where c.host = w.host and c.incarnation = cell_incarnation()) as was_compared,
        s.host is not distinct from w.host
          or exists (select from attempts e where e.server_uuid = s.uuid and e.host = w.host) as was_there
      from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int[]) with ordinality
        as w (host, attempt_id, server, task, selection, at)
      left join servers s on s.uuid = nullif(w.server, '')::uuid and s.status <> 'CLOSED'
      left join tasks t on t.id = nullif(w.task, '')::uuid and t.selection >= w.selection
      left join attempts a on a.task_id = t.id and a.selection = w.selection
      left join quarantined_guests q on q.host = w.host and q.attempt_id = w.attempt_id
      order by w.at`,
    values: [
      textArrayLiteral(guests.map(({ host }) => host)),
      textArrayLiteral(guests.map(({ attemptId }) => attemptId)),
      textArrayLiteral(guests.map(({ serverUuid }) => onlyUuids([serverUuid])[0] ?? "")),
      textArrayLiteral(attempts.map((attempt) => onlyUuids([attempt?.taskId ?? ""])[0] ?? "")),
      arrayLiteral(attempts.map((attempt) => attempt?.selection ?? 0)),
    ],
  });
  const verdicts = rows.map((row, at): GuestVerdict => {
    const guest = guests[at] as DoomedGuest;
    const plain: GuestVerdict = { kind: row.revision === null ? "unknown" : "destroy", reason: null };
    if (row.condemned !== null) return { kind: row.condemned ? "destroy" : "quarantined", reason: null };
    const { revision, incarnation } = row;
    const isStarted = isStartKnown(startRecordOf(row, attempts[at]?.selection ?? 0));
    const known = {
      ...knownOf(row),
      revision,
      isAttemptKnown: row.kind !== null,
      isStartKnown: isStarted,
      incarnation,
    };
    const reason = quarantineReason(guest, known);
    return reason === null ? plain : { kind: "quarantined", reason };
  });
  const kept = guests.flatMap((guest, at) => {
    const reason = verdicts[at]?.reason ?? null;
    return reason === null ? [] : [{ ...guest, reason, holds: mayBeForgotten(knownOf(rows[at] as KnownRow)) }];
  });
  if (kept.length > 0) await keep(client, kept);
  const hosts = guests.flatMap(({ host }, at) => (verdicts[at]?.kind === "quarantined" ? [host] : []));
  if (hosts.length > 0) await disableOnce(client, [...new Set(hosts)]);
  return verdicts;
}

const knownOf = (row: KnownRow) => ({ wasCompared: row.was_compared, wasThere: row.was_there });

function startRecordOf({ status, kind, stages, has_attempt, result }: KnownRow, selection: number): StartRecord {
  const task =
    kind === null ? null : { kind, result: has_attempt ? result : undefined, stages: stagesOf(stages ?? []) };
  return { status: status ?? "CLOSED", task, selection };
}

async function keep(
  client: PoolClient,
  guests: readonly (DoomedGuest & { readonly reason: string; readonly holds: boolean })[],
): Promise<void> {
  await queryRows(client, {
    name: "quarantine_guests",
    text: `insert into quarantined_guests (host, attempt_id, server_uuid, state, reason, holds)
      select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[])
        as w (host, attempt, server, state, reason, holds)
      order by w.host collate "C", w.attempt collate "C" on conflict do nothing`,
    values: [
      textArrayLiteral(guests.map(({ host }) => host)),
      textArrayLiteral(guests.map(({ attemptId }) => attemptId)),
      textArrayLiteral(guests.map(({ serverUuid }) => serverUuid)),
      textArrayLiteral(guests.map(({ state }) => state)),
      textArrayLiteral(guests.map(({ reason }) => reason)),
      textArrayLiteral(guests.map(({ holds }) => `${holds}`)),
    ],
  });
}

/** Disables each host once for its quarantined guests, as soon as the host is known, since it may not have reported yet. */
async function disableOnce(client: PoolClient, hosts: readonly string[]): Promise<void> {
  await queryRows(client, {
    name: "quarantine_disables",
    text: `with noted as (
        update quarantined_guests q set host_disabled = true from hosts h
        where q.host = h.name and h.name = any ($1) and not q.host_disabled returning h.name, h.disabled
      )
      select cell_set_host_disabled(n.name, true, $2) from (select distinct name from noted where not disabled order by name) n`,
    values: [textArrayLiteral(hosts), QUARANTINE_DISABLES],
  });
}

/** Writes nothing for hosts that were compared with this incarnation before. */
export async function noteCompared(
  pool: Pool,
  hosts: readonly { readonly host: string; readonly incarnation: string }[],
): Promise<void> {
  const last = [...new Map(hosts.map((one) => [one.host, one])).values()];
  await queryStored(pool, {
    name: "note_compared",
    text: `insert into compared_hosts as c (host, incarnation)
      select * from unnest($1::text[], $2::text[]) as w (host, incarnation) order by w.host collate "C"
      on conflict (host) do update set incarnation = excluded.incarnation, compared_at = now()
      where c.incarnation <> excluded.incarnation`,
    values: [
      textArrayLiteral(last.map(({ host }) => host)),
      textArrayLiteral(last.map(({ incarnation }) => incarnation)),
    ],
  });
}

export async function keepQuarantined(
  pool: Pool,
  hosts: readonly { readonly host: string; readonly attemptIds: readonly string[] }[],
): Promise<void> {
  const kept = hosts.flatMap(({ host, attemptIds }) => attemptIds.map((attemptId) => ({ host, attemptId })));
  await queryStored(pool, {
    name: "keep_quarantined",
    text: `delete from quarantined_guests q where q.host = any ($1)
      and not exists (
        select from unnest($2::text[], $3::text[]) as w (host, attempt) where w.host = q.host and w.attempt = q.attempt_id
      )`,
    values: [
      textArrayLiteral(hosts.map(({ host }) => host)),
      textArrayLiteral(kept.map(({ host }) => host)),
      textArrayLiteral(kept.map(({ attemptId }) => attemptId)),
    ],
  });
}

/** Lock order: servers by uuid. */
export async function raiseRevisions(
  pool: Pool,
  revisions: readonly { readonly serverUuid: string; readonly revision: number }[],
): Promise<void> {
  await queryStored(pool, {
    name: "raise_revisions",
    text: `with wanted as (
        select w.uuid, max(w.revision) as revision from unnest($1::uuid[], $2::int[]) as w (uuid, revision) group by w.uuid
      ), locked as (
        select s.uuid, w.revision from servers s join wanted w on w.uuid = s.uuid
        where s.revision < w.revision order by s.uuid for no key update of s
      )
      update servers s set revision = greatest(s.revision, l.revision) from locked l where s.uuid = l.uuid`,
    values: [
      textArrayLiteral(revisions.map(({ serverUuid }) => serverUuid)),
      arrayLiteral(revisions.map(({ revision }) => revision)),
    ],
  });
}

/** Lock order: servers by uuid. A running task of the server is in the server's `task_state`. */
export async function markUncertain(pool: Pool, servers: readonly UncertainServer[]): Promise<readonly boolean[]> {
  const rows = await queryStored<{ uuid: string }>(pool, {
    name: "mark_uncertain",
    text: `with wanted as (
        select distinct on (w.uuid) * from unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::text[])
          as w (uuid, host, attempt_id, revision, fault)
      ), locked as (
        select s.uuid, w.revision, w.fault from servers s join wanted w on w.uuid = s.uuid
        where s.status = 'ACTIVE' and s.task_state is null and s.host = w.host and s.attempt_id = w.attempt_id and s.revision < w.revision
        order by s.uuid for no key update of s
      )
      update servers s set status = 'ERROR', fault = l.fault, fault_at = now(), revision = l.revision, updated_at = now(),
        uncertain_since = now()
      from locked l where s.uuid = l.uuid returning s.uuid`,
    values: [
      textArrayLiteral(servers.map(({ serverUuid }) => serverUuid)),
      textArrayLiteral(servers.map(({ host }) => host)),
      textArrayLiteral(servers.map(({ attemptId }) => attemptId)),
      arrayLiteral(servers.map(({ revision }) => revision)),
      textArrayLiteral(servers.map(({ fault }) => fault)),
    ],
  });
  const changed = new Set(rows.map(({ uuid }) => uuid));
  return servers.map(({ serverUuid }) => changed.has(serverUuid.toLowerCase()));
}

export async function readQuarantined(pool: Pool): Promise<readonly QuarantinedGuest[]> {
  const rows = await queryStored<{
    host: string;
    attempt_id: string;
    server_uuid: string;
    state: string;
    reason: string;
    found_at_ms: number;
    condemned: boolean;
    holds: boolean;
  }>(pool, {
    name: "quarantined",
    text: `select host, attempt_id, server_uuid, state, reason, extract(epoch from found_at)::float8 * 1000 as found_at_ms, condemned, holds
      from quarantined_guests order by host collate "C", attempt_id collate "C"`,
    values: [],
  });
  return rows.map(({ host, state, reason, condemned, holds, ...row }) => ({
    ...{ host, serverUuid: row.server_uuid, attemptId: row.attempt_id, state, reason },
    ...{ foundAtMs: row.found_at_ms, condemned, holds },
  }));
}

export async function condemnGuests(pool: Pool, serverUuids: readonly string[] | null): Promise<number> {
  const rows = await queryStored(pool, {
    name: "condemn_guests",
    text: `update quarantined_guests set condemned = true
      where $1::text[] is null or server_uuid = any ($1) returning attempt_id`,
    values: [serverUuids === null ? null : textArrayLiteral(serverUuids)],
  });
  return rows.length;
}

/** When the database was restored or failed over last, as one row, which is null if neither has happened. Notes the timeline. */
export const LOST_COMMITS = `present as (select left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline),
  noticed as (
    update incarnation i set timeline = p.timeline, timeline_since = now() from present p where i.timeline <> p.timeline
  ),
  lost_commits as (
    select greatest(i.restored_at, case when i.timeline = p.timeline then i.timeline_since else now() end) as at from incarnation i, present p
  )`;

/**
 * Notes the timeline, too. A concurrent call may do so first, so the answer does not depend on which one has; and that call may have begun later than this one, so the time until now is that of the
 * clock and not of this call's begin. Cost: one round trip.
 */
export async function readRestoredAgo(pool: Pool): Promise<number | null> {
  const rows = await queryStored<{ ms: number | null }>(pool, {
    name: "restored_ago",
    text: `with ${LOST_COMMITS} select (extract(epoch from clock_timestamp() - l.at) * 1000)::float8 as ms from lost_commits l`,
    values: [],
  });
  return rows[0]?.ms ?? null;
}

export async function renewIncarnation(pool: Pool): Promise<string> {
  await queryStored(pool, {
    name: "renew_incarnation",
    text: "update incarnation set id = gen_random_uuid(), changed_at = now(), restored_at = now()",
    values: [],
  });
  return readIncarnation(pool);
}
