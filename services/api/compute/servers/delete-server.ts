import { randomUUID } from "node:crypto";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import { deleteTaskOf } from "../../../../core/tasks/server-spec.ts";
import type { Caller } from "../../../../proto/gen/berth/cell.ts";
import { type Cells, hydrateServer } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import { callerOf, type KnownCall } from "../../http/call.ts";
import type { RequestsPort } from "../../ports.ts";
import type { DeletionMarker } from "./deletion-marker.ts";
import { type RequestFinder, serverNotFound } from "./request-finder.ts";
import { refuseLocked } from "./server-lock.ts";

export interface DeleteServerDeps {
  readonly store: Pick<RequestsPort, "cancel">;
  readonly finder: RequestFinder;
  readonly cells: Cells;
  readonly marker: DeletionMarker;
  readonly events: ApiEvents;
}

/**
 * Handles `DELETE /servers/{id}`. Once the request is cancelled, the server will be deleted wherever it is, even if processes die. The
 * further steps here only make it faster; the schedulers' sweep takes them if this process dies or the cell does not answer. Refuses a
 * server that is unknown, of another project, or gone.
 */
export async function deleteServer(
  deps: DeleteServerDeps,
  call: KnownCall,
  id: string,
  carrier: Readonly<Record<string, string>>,
): Promise<void> {
  const known = await deps.finder.find(id, call);
  if (known === null || known.state === "deleted") throw serverNotFound(id);
  refuseLocked({ uuid: known.serverUuid, lock: known.changes?.lock ?? null }, "delete", call);
  // A repeated delete asks the cell: if the server is gone there, it is gone, even if the API database has not noted it yet.
  if (known.state === "cancelled" && (await hydrateServer(known, deps.cells, { withDeleted: false })) === null)
    throw serverNotFound(id);
  const cancelled = await deps.store.cancel(known.serverUuid, call.requestId);
  if (cancelled === null) throw serverNotFound(id);
  deps.events.deleteAccepted(cancelled.serverUuid);
  if (cancelled.state !== "cancelled") return;
  if (cancelled.cell === null) return deps.marker.markSoon(null, cancelled.serverUuid);
  await tellCell(deps, cancelled, { cell: cancelled.cell, askedBy: callerOf(call), carrier });
}

/** Has the cell stop other work on the server and store the delete task, and notifies the cell's conductors. */
async function tellCell(
  deps: DeleteServerDeps,
  record: RequestRecord,
  {
    cell: cellName,
    askedBy,
    carrier,
  }: { readonly cell: string; readonly askedBy: Caller; readonly carrier: Readonly<Record<string, string>> },
): Promise<void> {
  const task = deleteTaskOf(randomUUID(), record.serverUuid, askedBy);
  const cell = deps.cells.get(cellName);
  const answer = (await cell?.requestDelete(task)) ?? { kind: "unreachable" };
  if (cell === undefined || answer.kind === "unreachable") {
    deps.events.deleteLeftToSweep(record.serverUuid, cellName);
    return;
  }
  if (answer.value.kind === "deleted") return deps.marker.markSoon(record.cell, record.serverUuid);
  cell
    .publishTask(answer.value.task, carrier)
    .catch((error: unknown) => deps.events.publishFailed(record.serverUuid, error));
}
