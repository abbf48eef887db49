import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { MoveStore } from "../../../../core/stores/api/move-store.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import { type Cells, hydrateServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { conflict, type Fault, unavailable } from "../../http/fault.ts";
import { type RequestFinder, serverNotFound } from "../servers/request-finder.ts";
import { refuseLocked } from "../servers/server-lock.ts";
import { VM_STATES } from "../servers/shown-state.ts";
import { readWaitingMoves, waitingTaskState } from "../servers/waiting-moves.ts";

/** The server of an action in its cell. As far as is known, it has no operation under way. */
export interface ActionTarget {
  readonly action: string;
  readonly record: RequestRecord;
  readonly cell: CellClient;
  readonly server: Server;
}

/**
 * Finds the server. Refuses one that is unknown, another project's or gone; one with an operation under way, which it names; one that is
 * in no cell; one that is locked, for callers who are not admins; and one whose cell does not answer. `whenFound` may refuse the request before
 * the server's lock and operation are looked at, and `whenBusy` may refuse a busy server with a better reason.
 */
export async function findTarget(
  deps: {
    readonly finder: RequestFinder;
    readonly cells: Cells;
    readonly movesStore: Pick<MoveStore, "waiting"> | null;
  },
  call: KnownCall,
  {
    id,
    action,
    whenFound,
    whenBusy,
  }: {
    readonly id: string;
    readonly action: string;
    readonly whenFound?: (server: Server) => Promise<void>;
    readonly whenBusy?: (serverUuid: string) => Promise<void>;
  },
): Promise<ActionTarget> {
  const record = await deps.finder.find(id, call);
  if (record === null || record.state === "deleted") throw serverNotFound(id);
  const waiting = await readWaitingMoves(deps.movesStore, [record.serverUuid]);
  const known = await hydrateServer(record, deps.cells, { withDeleted: false });
  if (known === null) throw serverNotFound(id);
  if (!known.unreachable) await whenFound?.(known.server);
  refuseLocked({ uuid: record.serverUuid, lock: known.lock }, action, call);
  if (known.unreachable) throw unavailable(`Cell ${record.cell}, where the server lives, does not answer.`);
  const { server } = known;
  const moving = waiting.get(server.uuid);
  if (moving !== undefined) throw busy({ action, uuid: server.uuid }, waitingTaskState(moving.kind));
  if (server.taskState !== null) await whenBusy?.(server.uuid);
  if (server.taskState !== null) throw busy({ action, uuid: server.uuid }, server.taskState);
  const cell = record.cell === null ? undefined : deps.cells.get(record.cell);
  // A request that failed before it reached a cell has no server there.
  if (cell === undefined || record.state === "failed") throw wrongState({ action, uuid: server.uuid }, server.status);
  return { action, record, cell, server };
}

type Subject = { readonly action: string; readonly uuid: string };

/** Returns the 409 for a server that has another operation under way. */
export function busy({ action, uuid }: Subject, running: string): Fault {
  return conflict(`Cannot '${shownName(action)}' instance ${uuid} while it is in task_state ${running}`);
}

export function wrongState({ action, uuid }: Subject, status: Server["status"]): Fault {
  return conflict(`Cannot '${shownName(action)}' instance ${uuid} while it is in vm_state ${VM_STATES[status]}`);
}

/** Nova's refusals name these two actions otherwise than its requests do. */
const shownName = (action: string): string =>
  action === "os-start" || action === "os-stop" ? action.slice(3) : action;
