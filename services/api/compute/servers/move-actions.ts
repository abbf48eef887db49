import type { MoveRecord } from "../../../../core/stores/api/move-store.ts";
import type { Migration } from "../../../../core/tasks/migration.ts";
import { isMove, type MoveKind, operationKind } from "../../../../core/tasks/operation-kinds.ts";
import { NOT_REVERTED } from "../../../../core/tasks/operation-traits.ts";
import type { Attempt } from "../../../../core/tasks/server.ts";
import { type ActionEvent, attemptEvent, type InstanceAction } from "./action-event.ts";

/** A server's moves in the API tier and its migrations in its cell. */
export interface KnownMoves {
  readonly records: readonly MoveRecord[];
  readonly migrations: readonly Migration[];
}

export const NO_MOVES: KnownMoves = { records: [], migrations: [] };

/** The event for a destination that was told to start or destroy its guest, and that has not answered or has failed to do it. */
const EVENT_WAIT = "compute_wait_for_destination";

const LIVE = ["live-migration", "conductor_live_migrate_instance", "compute_live_migration"] as const;

/** Nova's names of the action, of the choice of a host, and of a try on a host, by kind of move. */
const NAMES: Readonly<Record<MoveKind, readonly [action: string, schedule: string, attempt: string] | null>> = {
  resize: ["resize", "conductor_migrate_server", "compute_prep_resize"],
  migrate: ["migrate", "conductor_migrate_server", "compute_prep_resize"],
  "live-migrate": LIVE,
  "live-migrate-paused": LIVE,
  evacuate: ["evacuate", "conductor_rebuild_instance", "compute_rebuild_instance"],
  unshelve: ["unshelve", "conductor_unshelve_instance", "compute_unshelve_instance"],
  // A rebuild stays on its host, so no scheduler has a record of it.
  rebuild: null,
  reimage: null,
};

/** Returns the moves of a server as actions, newest first. Each destination that was tried is an event with its reason. */
export function moveActionsOf({ records, migrations }: KnownMoves, attempts: readonly Attempt[]): InstanceAction[] {
  const byId = new Map(migrations.map((migration) => [migration.uuid, migration]));
  return records.flatMap((record) => {
    const ofMove = attempts.filter(({ taskId }) => taskId === record.request.id);
    return actionOf(record, byId.get(record.request.id), ofMove) ?? [];
  });
}

function actionOf(
  { request, state, fault, updatedAtMs }: MoveRecord,
  migration: Migration | undefined,
  attempts: readonly Attempt[],
): InstanceAction | null {
  const kind = operationKind(request.kind);
  const names = kind !== null && isMove(kind) ? NAMES[kind] : null;
  if (names === null) return null;
  const [action, schedule, attempt] = names;
  const failed = state === "refused" || migration?.status === "error" || migration?.status === "cancelled";
  const chosen: ActionEvent = {
    event: schedule,
    host: null,
    startedAtMs: request.createdAtMs,
    finishedAtMs: state === "accepted" ? null : updatedAtMs,
    result: state === "accepted" ? null : state === "refused" ? "Error" : "Success",
    details: fault,
  };
  return {
    action,
    ...(request.userId !== "" && { askedBy: { userId: request.userId, projectId: request.projectId } }),
    requestId: request.requestId,
    startedAtMs: request.createdAtMs,
    updatedAtMs: Math.max(updatedAtMs, migration?.updatedAtMs ?? 0),
    message: failed ? "Error" : null,
    events: [chosen, ...attempts.map((one) => attemptEvent(one, attempt)), ...noteEvents(migration)].reverse(),
  };
}

/** Returns events with the reason why the move currently waits, or could not be confirmed or reverted. */
function noteEvents(migration: Migration | undefined): ActionEvent[] {
  if (migration === undefined || migration.note === "") return [];
  const { status, note, destHost, updatedAtMs } = migration;
  const isRefused = status === "finished";
  const isOfRevert = status === "reverting" || note.startsWith(NOT_REVERTED);
  return [
    {
      event: isOfRevert ? "compute_revert_resize" : isRefused ? "compute_confirm_resize" : EVENT_WAIT,
      host: destHost,
      startedAtMs: updatedAtMs,
      finishedAtMs: isRefused ? updatedAtMs : null,
      result: isRefused ? "Error" : null,
      details: note,
    },
  ];
}
