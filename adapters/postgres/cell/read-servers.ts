import type { Pool } from "pg";
import type { PeriodQuery, PeriodStretch, StatusQuery } from "../../../core/stores/cell/cell-store.ts";
import type { ListPosition } from "../../../core/stores/cell/listed-servers.ts";
import type { Home } from "../../../core/tasks/home.ts";
import type { OperationKind } from "../../../core/tasks/operation-kinds.ts";
import type { Attempt, AttemptResult, Server, ServerStatus } from "../../../core/tasks/server.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored, selectMs } from "../client/store-query.ts";

export interface StoredServer {
  readonly uuid: string;
  readonly status: ServerStatus;
  readonly task_state: string | null;
  readonly spec: Buffer;
  readonly host: string | null;
  readonly attempt_id: string | null;
  readonly fault: string | null;
  readonly fault_at_ms: number | null;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
  readonly launched_at_ms: number | null;
  readonly deleted_at_ms: number | null;
  readonly revision: number;
}

export const SERVER_COLUMNS = `uuid, status, task_state, spec, host, attempt_id, fault, revision, ${[
  "fault_at",
  "created_at",
  "updated_at",
  "launched_at",
  "deleted_at",
]
  .map((column) => selectMs(column))
  .join(", ")}`;

/**
 * SQL that reads the servers with these UUIDs by their keys. With "offset 0" it never becomes a join, for which a plan that Postgres keeps without the
 * values may read all servers.
 */
export const serversAt = (uuids: string): string =>
  `select r.* from (${uuids}) u cross join lateral (select ${SERVER_COLUMNS} from servers where uuid = u.uuid offset 0) r`;

export async function readServers(pool: Pool, uuids: readonly string[]): Promise<readonly Server[]> {
  const rows = await queryStored<StoredServer>(pool, {
    name: "servers",
    text: `select ${SERVER_COLUMNS} from servers where uuid = any ($1) and status <> 'CLOSED'`,
    values: [arrayLiteral(onlyUuids(uuids))],
  });
  const byUuid = new Map(rows.map((row) => [row.uuid, row]));
  return uuids
    .map((uuid) => byUuid.get(uuid.toLowerCase()))
    .filter((row) => row !== undefined)
    .map(storedServerOf);
}

/** Cost: one round trip and a look at `rows` servers, or as many of the project, in the order of their UUIDs. Only the servers that match are decoded. */
export async function readServersOfPeriod(pool: Pool, query: PeriodQuery): Promise<PeriodStretch> {
  const rows = await queryStored<
    Omit<StoredServer, "uuid"> & {
      readonly uuid: string | null;
      readonly scanned: number;
      readonly last_uuid: string | null;
    }
  >(pool, {
    name: query.projectId === null ? "servers_of_period" : "servers_of_period_of_project",
    text: `with scanned as materialized (
        select uuid, status, launched_at, deleted_at from servers
        where uuid > $1::uuid${query.projectId === null ? "" : " and project_id = $5"} order by ${query.projectId === null ? "" : "project_id, "}uuid limit $2
      )
      select s.scanned, s.last_uuid, r.*
      from (
        select count(*)::int as scanned, (select uuid from scanned order by uuid desc limit 1) as last_uuid from scanned
      ) s
      left join (
        ${serversAt(`select uuid from scanned
          where launched_at < to_timestamp($4::float8 / 1000) and status <> 'CLOSED'
            and (deleted_at is null or deleted_at > to_timestamp($3::float8 / 1000))`)}
      ) r on true
      order by r.uuid`,
    values: [
      ...[query.after ?? LEAST_UUID, query.rows, query.beginMs, query.endMs],
      ...(query.projectId === null ? [] : [query.projectId]),
    ],
  });
  const [first] = rows;
  const isLast = first === undefined || first.scanned < query.rows;
  const servers = rows.flatMap(({ uuid, ...row }) => (uuid === null ? [] : [storedServerOf({ uuid, ...row })]));
  return { servers, resumeAt: isLast ? null : first.last_uuid };
}

/** No server has this UUID. */
export const LEAST_UUID = "00000000-0000-0000-0000-000000000000";

/** Cost: one round trip, and a look at no more than `looksMax` servers, and one more. */
export async function readServersByStatus(
  pool: Pool,
  { statuses, busy }: StatusQuery,
  looksMax: number,
): Promise<readonly ListPosition[] | null> {
  const rows = await queryStored<{
    readonly looked: number;
    readonly uuid: string | null;
    readonly created_at_ms: number;
  }>(pool, {
    name: "servers_by_status_looks",
    // Rows that were removed from `servers` by hand, or written there past the trigger, are left out. With "offset 0" and the order of the index, each
    // server is read by its key, and no servers of other statuses are.
    text: `with found as materialized (
        (
          select u.server_uuid, w.status from unnest($1::text[]) w (status) cross join lateral (
            select server_uuid from unusual_servers where status = w.status order by created_at desc, server_uuid limit $3
          ) u limit $3
        )
        union (select server_uuid, null from tasks where outcome is null and $2::boolean limit $3)
      )
      select l.looked, s.uuid, ${selectMs("created_at", "s.")}
      from (select count(*)::int as looked from found) l
      left join (
        select distinct r.uuid, r.created_at from found f
        cross join lateral (
          select uuid, created_at from servers where uuid = f.server_uuid and status = coalesce(f.status, status) offset 0
        ) r
        where (select count(*) from found) < $3
      ) s on true
      order by s.created_at desc, s.uuid`,
    values: [textArrayLiteral(statuses), busy, looksMax + 1],
  });
  if (rows.some(({ looked }) => looked > looksMax)) return null;
  return rows.flatMap((row) => (row.uuid === null ? [] : [{ uuid: row.uuid, createdAtMs: row.created_at_ms }]));
}

export function storedServerOf(row: StoredServer): Server {
  return {
    uuid: row.uuid,
    status: row.status,
    taskState: row.task_state,
    spec: ServerSpec.decode(row.spec),
    host: row.host,
    attemptId: row.attempt_id,
    fault: row.fault === null || row.fault_at_ms === null ? null : { message: row.fault, atMs: row.fault_at_ms },
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    launchedAtMs: row.launched_at_ms,
    deletedAtMs: row.deleted_at_ms,
    revision: row.revision,
  };
}

interface AttemptRow {
  readonly task_id: string;
  readonly selection: number;
  readonly server_uuid: string;
  readonly host: string;
  readonly started_at_ms: number;
  readonly ended_at_ms: number | null;
  readonly result: AttemptResult | null;
  readonly reason: string | null;
}

export async function readAttempts(pool: Pool, serverUuids: readonly string[]): Promise<readonly Attempt[]> {
  const uuids = onlyUuids(serverUuids);
  if (uuids.length === 0) return [];
  const rows = await queryStored<AttemptRow>(pool, {
    name: "attempts",
    text: `select a.task_id, a.selection, a.server_uuid, a.host, ${selectMs("started_at", "a.")}, ${selectMs("ended_at", "a.")},
        a.result, a.reason
      from attempts a join tasks t on t.id = a.task_id
      where a.server_uuid = any ($1) order by a.server_uuid, t.created_at, a.task_id, a.selection`,
    values: [textArrayLiteral(uuids)],
  });
  return rows.map((row) => ({
    taskId: row.task_id,
    selection: row.selection,
    serverUuid: row.server_uuid,
    host: row.host,
    startedAtMs: row.started_at_ms,
    endedAtMs: row.ended_at_ms,
    result: row.result,
    reason: row.reason,
  }));
}

export async function readServerCountByHost(pool: Pool): Promise<ReadonlyMap<string, number>> {
  const rows = await queryStored<{ host: string; servers: number }>(pool, {
    name: "server_count_by_host",
    text: "select host, count(*)::int as servers from servers where host is not null group by host",
    values: [],
  });
  return new Map(rows.map((row) => [row.host, row.servers]));
}

interface HomeRow {
  readonly uuid: string;
  readonly status: ServerStatus;
  readonly host: string | null;
  readonly attempt_id: string | null;
  readonly revision: number;
  readonly busy: boolean;
  readonly migration: string | null;
  readonly kind: OperationKind | null;
  readonly source_host: string | null;
  readonly source_attempt_id: string | null;
  readonly dest_host: string | null;
  readonly dest_attempt_id: string | null;
  readonly runs: boolean | null;
}

export async function readHomes(pool: Pool, serverUuids: readonly string[]): Promise<readonly Home[]> {
  const rows = await queryStored<HomeRow>(pool, {
    name: "homes",
    text: "select * from cell_homes($1)",
    values: [textArrayLiteral(onlyUuids(serverUuids))],
  });
  const byUuid = new Map(rows.map((row) => [row.uuid, row]));
  return serverUuids
    .map((uuid) => byUuid.get(uuid.toLowerCase()))
    .filter((row) => row !== undefined)
    .map(homeOf);
}

/** A DELETED server has no host. */
export async function readResidents(pool: Pool, hosts: readonly string[]): Promise<readonly (readonly Home[])[]> {
  const rows = await queryStored<HomeRow>(pool, {
    name: "residents",
    text: "select * from cell_residents($1)",
    values: [textArrayLiteral(hosts)],
  });
  const byHost = Map.groupBy(rows.map(homeOf), (home) => home.host);
  return hosts.map((host) => byHost.get(host) ?? []);
}

function homeOf(row: HomeRow): Home {
  const { uuid, status, host, attempt_id, revision, busy, migration, kind, runs } = row;
  const { source_host, source_attempt_id, dest_host, dest_attempt_id } = row;
  const source =
    source_host === null || source_attempt_id === null ? null : { host: source_host, attemptId: source_attempt_id };
  const move =
    migration === null || kind === null || dest_host === null || dest_attempt_id === null
      ? null
      : { uuid: migration, kind, source, dest: { host: dest_host, attemptId: dest_attempt_id }, runs: runs ?? false };
  return { serverUuid: uuid, status, host, attemptId: attempt_id, revision, busy, move };
}
