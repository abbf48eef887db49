import { taskSignalHeader } from "../../../../adapters/nats/streams.ts";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { OperationSignal } from "../../../../core/tasks/operation-step.ts";
import type { Task } from "../../../../proto/gen/berth/cell.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import { type Cells, hydrateServer } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, type Fault, notFound, unavailable } from "../../http/fault.ts";
import { type RequestFinder, serverNotFound } from "../servers/request-finder.ts";
import { isLiveInProgress, migrationNumber, type ShownMigration, shownMigration } from "./migration-view.ts";

/** The first microversion in which a migration that does not copy yet can be aborted. */
const ABORT_EARLY_FROM = 65;
/** Maximum number of migrations that are searched for one server, from the newest. */
const OF_SERVER_MAX = 1_000;

interface Deps {
  readonly finder: RequestFinder;
  readonly cells: Cells;
}

/** Returns a server's moves and their cell. Refuses a server that is unknown or gone. */
export async function serverMigrations(
  deps: Deps,
  call: KnownCall,
  id: string,
): Promise<{ readonly cell: CellClient | null; readonly migrations: readonly ShownMigration[] }> {
  const record: RequestRecord | null = await deps.finder.find(id, call);
  const known = record === null ? null : await hydrateServer(record, deps.cells, { withDeleted: false });
  if (record === null || known === null) throw serverNotFound(id);
  const cell = record.cell === null ? undefined : deps.cells.get(record.cell);
  if (cell === undefined) return { cell: null, migrations: [] };
  const answer = await cell.operations((store) =>
    store.migrations({ serverUuid: record.serverUuid, limit: OF_SERVER_MAX }),
  );
  if (answer.kind === "unreachable") throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
  return { cell, migrations: answer.value.flatMap((migration) => shownMigration(migration) ?? []) };
}

/** Finds a migration by its number or its uuid. */
export function findMigration(migrations: readonly ShownMigration[], id: string): ShownMigration | undefined {
  return migrations.find(({ migration }) => migration.uuid === id || String(migrationNumber(migration.uuid)) === id);
}

/**
 * Signals that a live migration is to be aborted, or completed now. The conductor reads the signal from the operation's row, and a message
 * tells it to read the row at once. Refuses a migration that has gone too far. An aborted migration leaves the server on its source host.
 */
export async function signalMigration(
  deps: Deps & { readonly events: ApiEvents },
  call: KnownCall,
  asked: {
    readonly id: string;
    readonly migrationId: string;
    readonly signal: OperationSignal;
    readonly carrier: Readonly<Record<string, string>>;
  },
): Promise<void> {
  const { id, migrationId, signal, carrier } = asked;
  const { cell, migrations } = await serverMigrations(deps, call, id);
  const found = findMigration(migrations, migrationId);
  if (cell === null || found === undefined)
    throw notFound(`Migration ${migrationId.slice(0, 100)} for server ${id.slice(0, 100)} not found.`);
  const { migration } = found;
  if (!hears(found, signal, call)) throw deaf(found, asked);
  const answer = await cell.operations((store) => store.signal([{ taskId: migration.uuid, signal }]));
  if (answer.kind === "unreachable") throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
  if (answer.value[0] !== "signalled") {
    // The migration progressed between the two reads, so its present state is the reason.
    const now = findMigration((await serverMigrations(deps, call, id)).migrations, migrationId);
    throw deaf(now ?? found, asked);
  }
  const task: Task = {
    id: migration.uuid,
    server: migration.server ?? undefined,
    work: migration.operation === null ? undefined : { $case: "operate", value: migration.operation },
  };
  cell
    .publishTask(task, { ...carrier, [taskSignalHeader]: signal }, `${migration.uuid}/${signal}/${call.requestId}`)
    .catch((error: unknown) => deps.events.publishFailed(migration.serverUuid, error));
}

/** Whether the migration's status allows the signal. Source: nova's live_migrate_abort and live_migrate_force_complete. */
function hears(found: ShownMigration, signal: OperationSignal, { minor }: KnownCall): boolean {
  const { status } = found.migration;
  const isEarly = status === "queued" || status === "preparing";
  return (
    isLiveInProgress(found) && (status === "running" || (signal === "abort" && minor >= ABORT_EARLY_FROM && isEarly))
  );
}

function deaf(
  { migration: { status, serverUuid } }: ShownMigration,
  { migrationId, signal }: { readonly migrationId: string; readonly signal: OperationSignal },
): Fault {
  const verb = signal === "abort" ? "abort live migration" : "force complete";
  return badRequest(
    `Migration ${migrationId} state of instance ${serverUuid} is ${status}. Cannot ${verb} while the migration is in this state.`,
  );
}
