import { hydrateServer } from "../../cells/hydrate-servers.ts";
import { callerOf, type KnownCall } from "../../http/call.ts";
import type { SoftDeleter } from "../soft-deletion/soft-deleter.ts";
import { type CancelServerDeps, cancelServer } from "./cancel-server.ts";
import { type RequestFinder, serverNotFound } from "./request-finder.ts";
import { refuseLocked } from "./server-lock.ts";

export interface DeleteServerDeps extends CancelServerDeps {
  readonly finder: RequestFinder;
  /** Null when this process has no store of soft deletions. */
  readonly softDeleter: SoftDeleter | null;
}

/**
 * Handles `DELETE /servers/{id}`: deletes the server softly where that is configured and possible, and otherwise for good. With `force`, it is deleted
 * for good in any case. Refuses a server that is unknown, of another project, or gone.
 */
export async function deleteServer(
  deps: DeleteServerDeps,
  call: KnownCall,
  id: string,
  { carrier, force }: { readonly carrier: Readonly<Record<string, string>>; readonly force: boolean },
): Promise<void> {
  const known = await deps.finder.find(id, call);
  if (known === null || known.state === "deleted") throw serverNotFound(id);
  refuseLocked({ uuid: known.serverUuid, lock: known.changes?.lock ?? null }, "delete", call);
  // A repeated delete asks the cell: if the server is gone there, it is gone, even if the API database has not noted it yet.
  if (known.state === "cancelled" && (await hydrateServer(known, deps.cells, { withDeleted: false })) === null)
    throw serverNotFound(id);
  const askedBy = callerOf(call);
  if (!force && (await deps.softDeleter?.delete(known, askedBy, carrier)) === true) return;
  if (!(await cancelServer(deps, known.serverUuid, { askedBy, carrier }))) throw serverNotFound(id);
}
