import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import { deleteTaskOf } from "../../../../core/tasks/server-spec.ts";
import type { Caller } from "../../../../proto/gen/berth/cell.ts";
import { newRowUuid } from "../../../../runtime/new-row-uuid.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import type { RequestsPort } from "../../ports.ts";
import type { DeletionMarker } from "./deletion-marker.ts";

export interface CancelServerDeps {
  readonly store: Pick<RequestsPort, "cancel">;
  readonly cells: Cells;
  readonly marker: DeletionMarker;
  readonly events: ApiEvents;
}

interface Asked {
  readonly askedBy: Caller;
  readonly carrier: Readonly<Record<string, string>>;
}

/**
 * Deletes a server for good. Once its request is cancelled, the server will be deleted wherever it is, even if processes die. The further steps here
 * only make it faster; the schedulers' sweep takes them if this process dies or the cell does not answer. Returns false for an unknown server, and one
 * that is gone.
 */
export async function cancelServer(deps: CancelServerDeps, serverUuid: string, asked: Asked): Promise<boolean> {
  const cancelled = await deps.store.cancel(serverUuid, asked.askedBy.requestId);
  if (cancelled === null) return false;
  deps.events.deleteAccepted(cancelled.serverUuid);
  if (cancelled.state !== "cancelled") return true;
  if (cancelled.cell === null) deps.marker.markSoon(null, cancelled.serverUuid);
  else await tellCell(deps, cancelled, cancelled.cell, asked);
  return true;
}

/** Has the cell stop other work on the server and store the delete task, and notifies the cell's conductors. */
async function tellCell(
  deps: CancelServerDeps,
  record: RequestRecord,
  cellName: string,
  { askedBy, carrier }: Asked,
): Promise<void> {
  const task = deleteTaskOf(newRowUuid(), record.serverUuid, askedBy);
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
