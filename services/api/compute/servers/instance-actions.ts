import type { PlacedDecision } from "../../../../core/scheduling/explain/decision.ts";
import { describeMisses } from "../../../../core/scheduling/explain/describe-misses.ts";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { DecisionRecord } from "../../../../core/stores/api/decision-store.ts";
import type { Attempt, Server } from "../../../../core/tasks/server.ts";
import type { TaskRecord } from "../../../../core/tasks/task-record.ts";
import { isoMicroseconds } from "../../http/times.ts";
import { type ActionEvent, attemptEvent, type InstanceAction } from "./action-event.ts";
import { type KnownMoves, moveActionsOf, NO_MOVES } from "./move-actions.ts";
import { operationActionsOf, userActionsOf } from "./operation-actions.ts";
import { hostIdOf } from "./server-view.ts";

/** Nova's names for the choice of a host and for one try to build on a host. */
const EVENT_SCHEDULE = "conductor_schedule_and_build_instances";
const EVENT_BUILD = "compute__do_build_and_run_instance";
const EVENT_DELETE = "compute_terminate_instance";

/**
 * Returns the actions of a server, newest first, from the API database and its cell: every attempt is an event with its host and reason.
 * `server` is null while no cell has the server. `decisions` are the kept decisions of schedulers, newest first.
 */
export function actionsOf(
  record: RequestRecord,
  server: Server | null,
  attempts: readonly Attempt[],
  decisions: readonly DecisionRecord[] = [],
  moves: KnownMoves = NO_MOVES,
  tasks: readonly TaskRecord[] = [],
): InstanceAction[] {
  // Attempts are sorted by task, oldest first, so the first task is the build.
  const building = attempts.filter(({ taskId }) => taskId === attempts[0]?.taskId);
  const created = createAction(record, server, building, decisions);
  const deleted = deleteAction(record, server, tasks);
  const later = [
    ...moveActionsOf(moves, attempts),
    ...operationActionsOf(tasks),
    ...userActionsOf(record.changes?.actions ?? []),
  ].sort((a, b) => b.startedAtMs - a.startedAtMs);
  return [...(deleted === null ? [] : [deleted]), ...later, created];
}

function createAction(
  record: RequestRecord,
  server: Server | null,
  attempts: readonly Attempt[],
  decisions: readonly DecisionRecord[],
): InstanceAction {
  const events = [...placedEvents(record, decisions), ...attempts.map((attempt) => attemptEvent(attempt, EVENT_BUILD))];
  if (record.state === "failed" || (record.state === "deleted" && record.fault !== null))
    events.push(scheduleEvent(record, decisions));
  const times = events.flatMap((event) => [event.startedAtMs, event.finishedAtMs ?? 0]);
  const failed = server?.status === "ERROR" || record.fault !== null;
  return {
    action: "create",
    requestId: record.spec.requestId,
    startedAtMs: record.createdAtMs,
    updatedAtMs: Math.max(record.createdAtMs, ...times),
    message: failed ? "Error" : null,
    events: events.reverse(),
  };
}

/**
 * Describes a failed search for a host. The fault has the reasons with counts, and the decision, while it is kept, has the hosts that
 * nearly fitted.
 */
function scheduleEvent(record: RequestRecord, decisions: readonly DecisionRecord[]): ActionEvent {
  const refused = decisions.map(({ decision }) => decision).find((decision) => decision.outcome === "refused");
  const nearest = describeMisses(refused?.nearest ?? []);
  return {
    event: EVENT_SCHEDULE,
    host: null,
    startedAtMs: record.createdAtMs,
    finishedAtMs: record.updatedAtMs,
    result: "Error",
    details: record.fault,
    ...(nearest !== "" && { forAdmins: nearest }),
  };
}

/**
 * Describes a successful search for a host: how many hosts were considered, and with how much effort. The host itself is named by the next
 * event, for admins only.
 */
function placedEvents(record: RequestRecord, decisions: readonly DecisionRecord[]): ActionEvent[] {
  return decisions.toReversed().flatMap(({ decision, atMs }) => {
    if (decision.outcome !== "placed") return [];
    return {
      event: EVENT_SCHEDULE,
      host: decision.host,
      startedAtMs: Math.min(record.createdAtMs, atMs),
      finishedAtMs: atMs,
      result: "Success",
      details: describePlacement(decision),
    };
  });
}

function describePlacement({ feasible, alternates, lostRaces }: PlacedDecision): string {
  const words = [`Chosen among the hosts that fit: ${feasible}`, `alternates: ${alternates.length}`];
  if (lostRaces > 0) words.push(`claims lost to others before: ${lostRaces}`);
  return words.join("; ");
}

function deleteAction(
  record: RequestRecord,
  server: Server | null,
  tasks: readonly TaskRecord[],
): InstanceAction | null {
  const { cancellation } = record;
  if (cancellation === null) return null;
  const gone = server === null || server.status === "DELETED" || record.state === "deleted";
  const goneAtMs = gone ? (server?.deletedAtMs ?? record.updatedAtMs) : null;
  const event: ActionEvent = {
    event: EVENT_DELETE,
    host: server?.host ?? null,
    startedAtMs: cancellation.atMs,
    finishedAtMs: goneAtMs,
    result: gone ? "Success" : null,
    details: null,
  };
  const askedBy = tasks.find(({ task }) => task.askedBy?.requestId === cancellation.requestId)?.task.askedBy;
  return {
    action: "delete",
    ...(askedBy !== undefined && { askedBy }),
    requestId: cancellation.requestId,
    startedAtMs: cancellation.atMs,
    updatedAtMs: goneAtMs ?? cancellation.atMs,
    message: null,
    events: [event],
  };
}

/** Returns an action as lists show it. */
export function actionView(action: InstanceAction, record: RequestRecord, minor: number) {
  return {
    action: action.action,
    instance_uuid: record.serverUuid,
    request_id: action.requestId,
    user_id: action.askedBy?.userId ?? record.spec.userId,
    project_id: action.askedBy?.projectId ?? record.spec.projectId,
    start_time: isoMicroseconds(action.startedAtMs),
    message: action.message,
    ...(minor >= 58 && { updated_at: isoMicroseconds(action.updatedAtMs) }),
  };
}

/** What the policy lets the viewer of an action see. */
interface ActionViewer {
  readonly minor: number;
  /** Events with tracebacks and hosts. */
  readonly showsEvents: boolean;
  readonly showsDetails: boolean;
}

/**
 * Returns one action with the events that the viewer may see (before microversion 2.51, only viewers whom the policy shows events). By
 * default only admins see hosts, tracebacks and, from 2.84 on, details, because the reasons in them name hosts.
 */
export function actionDetailView(action: InstanceAction, record: RequestRecord, viewer: ActionViewer) {
  const view = actionView(action, record, viewer.minor);
  if (!viewer.showsEvents && viewer.minor < 51) return view;
  return {
    ...view,
    events: action.events.map((event) => ({
      event: event.event,
      start_time: isoMicroseconds(event.startedAtMs),
      finish_time: event.finishedAtMs === null ? null : isoMicroseconds(event.finishedAtMs),
      result: event.result,
      // Clients take a traceback for a failure, so what else is known of an event is among its details alone.
      ...(viewer.showsEvents && { traceback: event.result === "Success" ? null : detailsOf(event) }),
      ...(viewer.showsEvents && viewer.minor >= 62 && { host: event.host }),
      ...(viewer.minor >= 62 && { hostId: hostIdOf(record.spec.projectId, event.host) }),
      ...(viewer.showsDetails && viewer.minor >= 84 && { details: detailsOf(event) }),
    })),
  };
}

function detailsOf({ details, forAdmins }: ActionEvent): string | null {
  return forAdmins === undefined ? details : [details, forAdmins].filter((one) => one !== null).join(" ");
}
