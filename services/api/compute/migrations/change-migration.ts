import { taskSignalHeader } from "../../../../adapters/nats/streams.ts";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { MoveStore } from "../../../../core/stores/api/move-store.ts";
import type { OperationSignal } from "../../../../core/tasks/operation-step.ts";
import type { Task } from "../../../../proto/gen/berth/cell.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import { type Cells, hydrateServer } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, type Fault, notFound, unavailable } from "../../http/fault.ts";
import { type RequestFinder, serverNotFound } from "../servers/request-finder.ts";
import { findServer } from "../servers/require-state.ts";
import { refuseLocked } from "../servers/server-lock.ts";
import { readWaitingMoves, withWaitingMove } from "../servers/waiting-moves.ts";
import { isLiveInProgress, migrationNumber, type ShownMigration, shownMigration } from "./migration-view.ts";
import { refuseUnlessMigrating } from "./refuse-unless-migrating.ts";

/** The first microversion in which a migration that does not copy yet can be aborted. */
const ABORT_EARLY_FROM = 65;
/** Maximum number of migrations that are searched for one server, from the newest. */
const OF_SERVER_MAX = 1_000;

interface Deps {
  readonly finder: RequestFinder;
  readonly cells: Cells;
}

/** Returns a server's moves and their cell. Refuses a server that is unknown or gone. */
export async function serverMigrations(deps: Deps, call: KnownCall, id: string): Promise<ServerMigrations> {
  return migrationsOf(deps, (await findServer(deps, call, id)).record);
}

interface ServerMigrations {
  readonly cell: CellClient | null;
  readonly migrations: readonly ShownMigration[];
}

async function migrationsOf({ cells }: Deps, record: RequestRecord): Promise<ServerMigrations> {
  const cell = record.cell === null ? undefined : cells.get(record.cell);
  if (cell === undefined) return { cell: null, migrations: [] };
  const answer = await cell.operations((store) =>
    store.migrations({ serverUuid: record.serverUuid, limit: OF_SERVER_MAX }),
  );
  if (answer.kind === "unreachable") throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
  return { cell, migrations: answer.value.flatMap((migration) => shownMigration(migration) ?? []) };
}

/** Finds a server that moves live. Refuses one that is unknown or gone (404), and one that is locked or does not move live (409). */
async function findMoving(
  deps: Deps & { readonly movesStore: Pick<MoveStore, "waiting"> | null },
  call: KnownCall,
  { id, signal }: { readonly id: string; readonly signal: OperationSignal },
): Promise<RequestRecord> {
  const record = await deps.finder.find(id, call);
  if (record === null) throw serverNotFound(id);
  const waiting = await readWaitingMoves(deps.movesStore, [record.serverUuid]);
  const known = await hydrateServer(record, deps.cells, { withDeleted: false });
  if (known === null) throw serverNotFound(id);
  refuseLocked({ uuid: record.serverUuid, lock: known.lock }, signal, call);
  if (known.unreachable) throw unavailable(`Cell ${record.cell}, where the server lives, does not answer.`);
  refuseUnlessMigrating(withWaitingMove(known, waiting).server, signal);
  return record;
}

/** Finds a migration by its number or its uuid. */
export function findMigration(migrations: readonly ShownMigration[], id: string): ShownMigration | undefined {
  return migrations.find(({ migration }) => migration.uuid === id || String(migrationNumber(migration.uuid)) === id);
}

/**
 * Signals that a live migration is to be aborted, or completed now. The conductor reads the signal from the operation's row, and a message
 * tells it to read the row at once. Refuses, in this order and as Nova does, a server that does not move live (409), a migration that is unknown, and one that has gone too far (400). An aborted migration leaves the server on its source host.
 */
export async function signalMigration(
  deps: Deps & { readonly events: ApiEvents; readonly movesStore: Pick<MoveStore, "waiting"> | null },
  call: KnownCall,
  asked: {
    readonly id: string;
    readonly migrationId: string;
    readonly signal: OperationSignal;
    readonly carrier: Readonly<Record<string, string>>;
  },
): Promise<void> {
  const { id, migrationId, signal, carrier } = asked;
  const record = await findMoving(deps, call, asked);
  const { cell, migrations } = await migrationsOf(deps, record);
  const found = findMigration(migrations, migrationId);
  if (cell === null || found === undefined) {
    const unknown = `Migration ${migrationId.slice(0, 100)} for server ${id.slice(0, 100)} not found.`;
    // Nova refuses the two with different statuses.
    throw signal === "abort" ? notFound(unknown) : badRequest(unknown);
  }
  const { migration } = found;
  if (!hears(found, signal, call)) throw deaf(found, asked);
  const answer = await cell.operations((store) => store.signal([{ taskId: migration.uuid, signal }]));
  if (answer.kind === "unreachable") throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
  if (answer.value[0] !== "signalled") {
    // The migration progressed between the two reads, so its present state is the reason.
    const now = findMigration((await migrationsOf(deps, record)).migrations, migrationId);
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
