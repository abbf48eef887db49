import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { ServerStatus } from "../../../../core/tasks/server.ts";
import { type Cells, hydrateServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { conflict, unavailable } from "../../http/fault.ts";
import { type RequestFinder, serverNotFound } from "./request-finder.ts";
import { refuseLocked } from "./server-lock.ts";
import { VM_STATES } from "./shown-state.ts";

/** The statuses in which a server's metadata and tags may be changed, whatever operation is under way. Source: Nova's compute API. */
const CHANGEABLE: ReadonlySet<ServerStatus> = new Set(["ACTIVE", "PAUSED", "SUSPENDED", "SHUTOFF"]);

/** Finds a server for a call that reads it. Refuses one that is unknown, another project's or gone. */
export async function findServer(
  deps: { readonly finder: RequestFinder; readonly cells: Cells },
  call: KnownCall,
  id: string,
) {
  const record = await deps.finder.find(id, call);
  const known = record === null ? null : await hydrateServer(record, deps.cells, { withDeleted: false });
  if (record === null || known === null) throw serverNotFound(id);
  return { record, known };
}

/** Finds a server whose metadata or tags will be changed. Refuses a locked server, and one in a status that does not allow the change. */
export async function findChangeable(
  deps: { readonly finder: RequestFinder; readonly cells: Cells },
  call: KnownCall,
  { id, action }: { readonly id: string; readonly action: string },
): Promise<RequestRecord> {
  const { record, known } = await findServer(deps, call, id);
  refuseLocked({ uuid: record.serverUuid, lock: known.lock }, action, call);
  if (known.unreachable) throw unavailable(`Cell ${record.cell}, where the server lives, does not answer.`);
  const { status } = known.server;
  if (!CHANGEABLE.has(status))
    throw conflict(`Cannot '${action}' instance ${record.serverUuid} while it is in vm_state ${VM_STATES[status]}`);
  return record;
}
