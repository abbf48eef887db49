import { isOpenRequest } from "../../../core/placing/multi-create.ts";
import type { RequestRecord } from "../../../core/stores/api/api-store.ts";
import type { Server } from "../../../core/tasks/server.ts";
import { changedSpec, type ServerLock, type UserChanges } from "../../../core/tasks/user-changes.ts";
import type { CellClient } from "./cell-client.ts";

/**
 * The known facts about a server. When `unreachable` is true, its cell does not answer and `server` describes the request. When `inCell` is
 * true, `server` comes from its cell.
 */
export interface KnownServer {
  readonly server: Server;
  /** The cell that the request is assigned to. */
  readonly cell: string | null;
  /** Null when the server is not locked. */
  readonly lock: ServerLock | null;
  readonly inCell: boolean;
  readonly unreachable: boolean;
}

export type Cells = ReadonlyMap<string, CellClient>;

const NOTHING_READ: ReadonlyMap<string, Server> = new Map();

/**
 * Completes a page of accepted requests with the data of their cells: one question per cell, all at the same time. The answers are in the
 * order of `records`. Servers that their cell has deleted are left out unless `withDeleted`. Cells are not asked about the servers that they have told already: `read`, by
 * `keyInCell`.
 */
export async function hydrateServers(
  records: readonly RequestRecord[],
  cells: Cells,
  options: { readonly withDeleted: boolean; readonly read?: ReadonlyMap<string, Server> },
): Promise<KnownServer[]> {
  const { withDeleted, read = NOTHING_READ } = options;
  const uuidsByCell = new Map<string, string[]>();
  for (const record of records) {
    if (!livesInCell(record) || read.has(keyInCell(record.cell, record.serverUuid))) continue;
    const uuids = uuidsByCell.get(record.cell);
    if (uuids === undefined) uuidsByCell.set(record.cell, [record.serverUuid]);
    else uuids.push(record.serverUuid);
  }
  const answers = await Promise.all(
    Array.from(uuidsByCell, async ([name, uuids]) => [name, await cells.get(name)?.servers(uuids)] as const),
  );
  const serversByUuid = new Map<string, Server>();
  const answering = new Set<string>();
  for (const [name, answer] of answers) {
    if (answer?.kind !== "answer") continue;
    answering.add(name);
    for (const server of answer.value) serversByUuid.set(server.uuid, server);
  }
  const known: KnownServer[] = [];
  for (const record of records) {
    const isInCell = livesInCell(record);
    const told = isInCell ? read.get(keyInCell(record.cell, record.serverUuid)) : undefined;
    const unreachable = isInCell && told === undefined && !answering.has(record.cell);
    const server = told ?? (isInCell ? serversByUuid.get(record.serverUuid) : undefined) ?? null;
    const found = knownServer(record, server, unreachable);
    if (withDeleted || found.server.status !== "DELETED") known.push(found);
  }
  return known;
}

/** Completes one request, in one query with others that are asked for at the same time. Returns null when the server is gone. */
export async function hydrateServer(
  record: RequestRecord,
  cells: Cells,
  options: { readonly withDeleted: boolean },
): Promise<KnownServer | null> {
  if (!livesInCell(record)) return keepUnlessDeleted(knownServer(record, null, false), options.withDeleted);
  const answer = (await cells.get(record.cell)?.server(record.serverUuid)) ?? { kind: "unreachable" };
  const server = answer.kind === "answer" ? answer.value : null;
  return keepUnlessDeleted(knownServer(record, server, answer.kind === "unreachable"), options.withDeleted);
}

function keepUnlessDeleted(known: KnownServer, withDeleted: boolean): KnownServer | null {
  return withDeleted || known.server.status !== "DELETED" ? known : null;
}

/** Whether the server of the request is in its cell, or is on its way there. */
export function livesInCell(record: RequestRecord): record is RequestRecord & { readonly cell: string } {
  return record.cell !== null && record.state !== "failed" && record.state !== "deleted";
}

/** Names what one cell says of a server. Only the cell to which the server's request is assigned counts. */
export const keyInCell = (cell: string | null, serverUuid: string): string => `${cell} ${serverUuid}`;

/** Combines a request with its server: the cell's data where it exists, else the data of the request itself, with the changes of users. */
export function knownServer(record: RequestRecord, server: Server | null, unreachable: boolean): KnownServer {
  // A scheduler that refuses all servers of a call deletes each in its cell before it fails the request, and meanwhile the server is not gone.
  // The spec of the request is asked last: it is decoded then, and of nearly all servers the cell's is shown.
  const isTakenBack = server?.status === "DELETED" && isOpenRequest(record) && record.spec.reservationId !== "";
  if (server !== null && !isTakenBack) return knownInCell(record, server);
  const { cell, changes } = record;
  const shown = serverOf(record, stateOf(record, unreachable));
  return { server: shown, cell, lock: changes?.lock ?? null, inCell: false, unreachable };
}

type RequestInCell = Pick<RequestRecord, "cell" | "state" | "changes" | "softlyDeleted">;

/** Combines what the cell knows of a server with the changes and the wishes of users, which only the request has. */
export function knownInCell(record: RequestInCell, server: Server): KnownServer {
  const { cell, changes, state } = record;
  const deleting = state === "cancelled" && server.status !== "DELETED";
  const shown = deleting ? { ...server, taskState: "deleting" } : withSoftDeletion(record, server);
  return {
    ...{ server: withChanges(shown, changes), cell, lock: changes?.lock ?? null },
    ...{ inCell: true, unreachable: false },
  };
}

/**
 * Shows the aim of a soft deletion that the cell has not carried out yet. For a server on no host, the cell has nothing to do. A server that
 * some other operation has stopped or started is still on its way to its aim.
 */
function withSoftDeletion({ softlyDeleted }: RequestInCell, server: Server): Server {
  const { status, taskState, host } = server;
  if (taskState !== null || status === "DELETED" || softlyDeleted === (status === "SOFT_DELETED")) return server;
  if (!softlyDeleted) return { ...server, taskState: "restoring" };
  return host === null ? { ...server, status: "SOFT_DELETED" } : { ...server, taskState: "soft-deleting" };
}

function stateOf({ state }: RequestRecord, unreachable: boolean): Pick<Server, "status" | "taskState"> {
  if (unreachable) return { status: "BUILD", taskState: state === "cancelled" ? "deleting" : null };
  switch (state) {
    case "accepted":
    case "dispatched":
      return { status: "BUILD", taskState: "scheduling" };
    case "failed":
      return { status: "ERROR", taskState: null };
    case "cancelled":
    case "deleted":
      return { status: "DELETED", taskState: null };
    default:
      return state satisfies never;
  }
}

/** Shows the changes in place of the cell's data. */
function withChanges(server: Server, changes: UserChanges | null): Server {
  if (changes === null) return server;
  const { spec, updatedAtMs } = server;
  return {
    ...server,
    spec: changedSpec(spec, changes),
    updatedAtMs: Math.max(updatedAtMs, changes.atMs ?? updatedAtMs),
  };
}

/** Describes a request that is in no cell in the form of a server. */
function serverOf(record: RequestRecord, state: Pick<Server, "status" | "taskState">): Server {
  return {
    uuid: record.serverUuid,
    ...state,
    spec: record.spec,
    host: null,
    attemptId: null,
    fault: record.fault === null ? null : { message: record.fault, atMs: record.updatedAtMs },
    createdAtMs: record.createdAtMs,
    updatedAtMs: record.updatedAtMs,
    launchedAtMs: null,
    deletedAtMs: state.status === "DELETED" ? record.updatedAtMs : null,
    revision: 0,
  };
}
