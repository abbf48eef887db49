import { compare } from "../../../core/ledger/ledger-state.ts";
import type {
  ChangedServers,
  ChangesQuery,
  PeriodQuery,
  PeriodStretch,
  StatusQuery,
} from "../../../core/stores/cell/cell-store.ts";
import {
  type AttributeQuery,
  type AttributeStretch,
  type AttributeValueAsked,
  type IndexedAttribute,
  type ListPosition,
  newestFirst,
  type ServerSketch,
  type SketchQuery,
  type TokenQuery,
  type ValuesQuery,
} from "../../../core/stores/cell/listed-servers.ts";
import { specTokens } from "../../../core/stores/cell/spec-tokens.ts";
import type { Attempt, Server } from "../../../core/tasks/server.ts";
import type { TaskRecord } from "../../../core/tasks/task-record.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { AttemptRow, CellState, ServerRow } from "./cell-state.ts";

/** The row as a server of the cell. Null when there is no row or it only marks the UUID as closed. */
export function serverOf(row: ServerRow | undefined): Server | null {
  return row === undefined || row.status === "CLOSED" ? null : { ...row, status: row.status };
}

export function serversChanged(cell: CellState, query: ChangesQuery): ChangedServers {
  const { sinceMs, beforeMs, deleted, projectId, looksMax } = query;
  const servers = [...cell.servers.values()]
    .filter((row) => row.updatedAtMs >= sinceMs && row.updatedAtMs <= (beforeMs ?? Number.POSITIVE_INFINITY))
    .filter((row) => !deleted || row.deletedAtMs !== null || row.status === "SOFT_DELETED")
    .sort((a, b) => a.updatedAtMs - b.updatedAtMs || compare(a.uuid, b.uuid))
    .map(serverOf)
    .filter((server) => server !== null);
  if (servers.length > looksMax) return { kind: "too-many" };
  return {
    kind: "found",
    servers: servers.filter(({ spec }) => projectId === null || spec.projectId === projectId),
  };
}

export function serversOfPeriod(cell: CellState, query: PeriodQuery): PeriodStretch {
  const { beginMs, endMs, projectId, after, rows } = query;
  const scanned = [...cell.servers.values()]
    .filter(
      ({ uuid, spec }) => (after === null || uuid > after) && (projectId === null || spec.projectId === projectId),
    )
    .sort((a, b) => compare(a.uuid, b.uuid))
    .slice(0, rows);
  const servers = scanned
    .filter(
      ({ launchedAtMs, deletedAtMs }) =>
        launchedAtMs !== null && launchedAtMs < endMs && (deletedAtMs ?? endMs) > beginMs,
    )
    .map(serverOf)
    .filter((server) => server !== null);
  return { servers, resumeAt: scanned.length < rows ? null : (scanned.at(-1)?.uuid ?? null) };
}

/** The statuses of servers that are not listed apart, as in the table `unusual_servers`. */
const USUAL_STATUSES: ReadonlySet<string> = new Set(["BUILD", "ACTIVE", "DELETED", "CLOSED"]);

export function serversByStatus(
  cell: CellState,
  { statuses, busy }: StatusQuery,
  looksMax: number,
): readonly ListPosition[] | null {
  const wanted = new Set<string>(statuses.filter((status) => !USUAL_STATUSES.has(status)));
  const isBusy = (uuid: string) => (cell.tasksByServer.get(uuid) ?? []).some(({ outcome }) => outcome === null);
  const found = [...cell.servers.values()].filter(({ uuid, status }) => wanted.has(status) || (busy && isBusy(uuid)));
  return found.length > looksMax ? null : found.sort(newestFirst).map(positionOf);
}

const ATTRIBUTES: Readonly<Record<IndexedAttribute, (row: ServerRow) => string | null | undefined>> = {
  flavor: ({ spec }) => spec.flavor?.id,
  image: ({ spec }) => spec.imageRef,
  user: ({ spec }) => spec.userId,
  key: ({ spec }) => spec.keyName || null,
  reservation: ({ spec }) => spec.requestId.slice(30),
  status: ({ status }) => status,
  host: ({ host }) => host,
};

function hasValue(
  row: ServerRow,
  { attribute, value, otherValues = [], orNone = false }: AttributeValueAsked,
): boolean {
  const own = ATTRIBUTES[attribute](row) ?? null;
  return own === null ? orNone : own === value || otherValues.includes(own);
}

export function serversByAttribute(cell: CellState, query: AttributeQuery): AttributeStretch {
  const { attribute, others = [], nameContains = "", projectId, oldestFirst, after, looksMax, limit } = query;
  const inOrder = (one: ListPosition, other: ListPosition) => newestFirst(one, other) * (oldestFirst ? -1 : 1);
  const scanned = [...cell.servers.values()]
    .filter((row) => row.deletedAtMs === null && hasValue(row, query))
    .filter(({ status }) => attribute !== "status" || !USUAL_STATUSES.has(status))
    .filter((row) => after === null || inOrder(after, row) < 0)
    .sort(inOrder)
    .slice(0, looksMax);
  const passing = scanned
    .filter(({ spec }) => projectId === null || spec.projectId === projectId)
    .filter((row) => row.spec.name.includes(nameContains) && others.every((other) => hasValue(row, other)))
    .map(serverOf)
    .filter((server) => server !== null)
    .slice(0, limit);
  const last = passing.length === limit ? passing.at(-1) : scanned.length < looksMax ? undefined : scanned.at(-1);
  return { servers: passing, resumeAt: last === undefined ? null : positionOf(last) };
}

export function serverSketches(cell: CellState, query: SketchQuery): readonly ServerSketch[] | null {
  const { others, projectId, looksMax, parts, specFields } = query;
  const looked = [...cell.servers.values()].filter((row) => row.deletedAtMs === null && hasValue(row, query));
  if (looked.length > looksMax) return null;
  return looked
    .filter(
      (row) => (projectId === null || row.spec.projectId === projectId) && others.every((one) => hasValue(row, one)),
    )
    .map(serverOf)
    .filter((server) => server !== null)
    .map(({ uuid, createdAtMs, status, taskState, host, updatedAtMs, launchedAtMs, spec }) => ({
      ...{ uuid, createdAtMs },
      ...(parts.includes("status") && { status, taskState }),
      ...(parts.includes("host") && { host }),
      ...(parts.includes("updatedAt") && { updatedAtMs }),
      ...(parts.includes("launchedAt") && { launchedAtMs }),
      ...(specFields.length > 0 && {
        spec: ServerSpec.fromPartial(Object.fromEntries(specFields.map((field) => [field, spec[field]]))),
      }),
    }));
}

export function attributeValues(
  cell: CellState,
  { attribute, contains, looksMax }: ValuesQuery,
): readonly string[] | null {
  const living = [...cell.servers.values()].filter(({ deletedAtMs }) => deletedAtMs === null);
  const values = new Set(living.map((row) => ATTRIBUTES[attribute](row)).filter((value) => typeof value === "string"));
  return values.size > looksMax ? null : [...values].filter((value) => value.includes(contains)).sort();
}

export function serversByTokens(
  cell: CellState,
  { tokens, projectId, looksMax }: TokenQuery,
): readonly ListPosition[] | null {
  const having = [...cell.servers.values()].filter(
    ({ spec, deletedAtMs }) => deletedAtMs === null && specTokens(spec).some((own) => tokens.includes(own)),
  );
  if (having.length > looksMax) return null;
  return having.filter(({ spec }) => projectId === null || spec.projectId === projectId).map(positionOf);
}

function serversOnHosts(cell: CellState, hosts: readonly string[], limit: number): readonly ListPosition[] {
  return [...cell.servers.values()]
    .filter(({ host }) => host !== null && hosts.includes(host))
    .sort(newestFirst)
    .slice(0, limit)
    .map(positionOf);
}

export function serversOnHostsNamed(
  cell: CellState,
  contains: string,
  { hostsMax, limit }: { readonly hostsMax: number; readonly limit: number },
): readonly ListPosition[] | null {
  const hosts = [...cell.hosts.keys()].filter((name) => name.includes(contains));
  return hosts.length > hostsMax ? null : serversOnHosts(cell, hosts, limit);
}

const positionOf = ({ uuid, createdAtMs }: ListPosition): ListPosition => ({ uuid, createdAtMs });

export function attemptsOf(cell: CellState, serverUuid: string): readonly Attempt[] {
  return cell
    .attemptsOf(serverUuid)
    .map((row) => ({ ...row }))
    .sort((a, b) => storedAt(cell, a) - storedAt(cell, b) || compare(a.taskId, b.taskId) || a.selection - b.selection);
}

export function tasksOf(cell: CellState, serverUuid: string): readonly TaskRecord[] {
  return (cell.tasksByServer.get(serverUuid) ?? [])
    .map(({ task, kind, createdAtMs, endedAtMs, outcome, stage, reason, takings, stages }) => ({
      ...{ task, kind, createdAtMs, endedAtMs, outcome, stage, reason, takings, stages },
    }))
    .sort((a, b) => a.createdAtMs - b.createdAtMs || compare(a.task.id, b.task.id));
}

const storedAt = (cell: CellState, attempt: AttemptRow): number => cell.tasks.get(attempt.taskId)?.createdAtMs ?? 0;

export function serverCountByHost(cell: CellState): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { host } of cell.servers.values()) if (host !== null) counts.set(host, (counts.get(host) ?? 0) + 1);
  return counts;
}
