import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { DecisionStore } from "../../../../core/stores/api/decision-store.ts";
import type { MoveStore } from "../../../../core/stores/api/move-store.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { unavailable } from "../../http/fault.ts";
import type { InstanceAction } from "./action-event.ts";
import { actionsOf } from "./instance-actions.ts";
import { type RequestFinder, serverNotFound } from "./request-finder.ts";

/** Maximum number of moves that are shown for one server. The newest are shown. */
const MOVES_MAX = 200;
/** The first microversion that shows the actions of deleted servers. */
const DELETED_FROM_MINOR = 21;

/** Returns the actions of a server, newest first. Refuses an unknown server, and needs an answer of the server's cell. */
export async function showActions(
  deps: {
    readonly finder: RequestFinder;
    readonly cells: Cells;
    readonly movesStore: Pick<MoveStore, "movesOf"> | null;
    readonly decisions: Pick<DecisionStore, "decisionsOf"> | null;
  },
  call: KnownCall,
  id: string,
): Promise<{ readonly record: RequestRecord; readonly actions: readonly InstanceAction[] }> {
  const record = await deps.finder.find(id, call);
  if (record === null || (record.state === "deleted" && call.minor < DELETED_FROM_MINOR)) throw serverNotFound(id);
  const decisions = (await deps.decisions?.decisionsOf(record.serverUuid)) ?? [];
  if (record.cell === null) return { record, actions: actionsOf(record, null, [], decisions) };
  const cell = deps.cells.get(record.cell);
  const { serverUuid } = record;
  const [server, attempts, migrations, tasks, moves] = await Promise.all([
    cell?.server(serverUuid),
    cell?.attempts(serverUuid),
    cell?.operations((store) => store.migrations({ serverUuid, limit: MOVES_MAX })),
    cell?.operations((store) => store.tasksOf(serverUuid)),
    deps.movesStore?.movesOf(serverUuid, MOVES_MAX) ?? [],
  ]);
  if (
    server?.kind !== "answer" ||
    attempts?.kind !== "answer" ||
    migrations?.kind !== "answer" ||
    tasks?.kind !== "answer"
  )
    throw unavailable(`Cell ${record.cell}, where the server lives, does not answer.`);
  if (server.value?.status === "DELETED" && call.minor < DELETED_FROM_MINOR) throw serverNotFound(id);
  const known = { records: moves, migrations: migrations.value };
  return { record, actions: actionsOf(record, server.value, attempts.value, decisions, known, tasks.value) };
}
