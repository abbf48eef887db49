import type { AttemptLife, TaskLife } from "../../../../core/scheduling/explain/task-life.ts";
import type { DecisionRecord } from "../../../../core/stores/api/decision-store.ts";
import type { MoveRecord } from "../../../../core/stores/api/move-store.ts";
import { nextStepAfter } from "../../../../core/tasks/failure-message.ts";
import type { Caller } from "../../../../proto/gen/berth/cell.ts";
import { isoSeconds } from "../../http/times.ts";
import { describeMissing, describeWaits } from "./describe-life.ts";
import type { KnownLife } from "./known-life.ts";
import type { LifeAnswer } from "./life-schemas.ts";

/** Returns a server's whole history as the operators' API shows it. `hasDashboard` tells whether this api serves the dashboard. */
export function lifeView(known: KnownLife, hasDashboard: boolean): LifeAnswer {
  const { request, inCell, moves, decisions } = known;
  const server = inCell?.server ?? null;
  const tasks = inCell?.tasks ?? [];
  const begun = new Set(tasks.map(({ id }) => id));
  return {
    server: known.serverUuid,
    name: request?.spec.name ?? server?.spec.name ?? null,
    cell: known.cellName,
    state: server && {
      ...{ status: server.status, task_state: server.taskState, host: server.host },
      fault: server.fault && {
        ...{ message: server.fault.message, at: iso(server.fault.atMs) },
        next_step: nextStepAfter(server.fault.message, known.serverUuid),
      },
      ...{ launched_at: isoOrNull(server.launchedAtMs), deleted_at: isoOrNull(server.deletedAtMs) },
    },
    request: request && {
      ...{ state: request.state, asked_by: callerView(request.spec), fault: request.fault },
      ...{ at: iso(request.createdAtMs), updated_at: iso(request.updatedAtMs) },
    },
    deletion: request?.cancellation
      ? { request_id: request.cancellation.requestId, at: iso(request.cancellation.atMs) }
      : null,
    decisions: decisions.map((one) => ({ ...decisionView(one), at: iso(one.atMs) })),
    tasks: tasks.map(taskView),
    requested_moves: moves.filter((move) => !begun.has(move.request.id)).map(moveView),
    hosts: (inCell?.hosts ?? []).map(({ name, up, forcedDown, seenAtMs }) => ({
      ...{ name, up, forced_down: forcedDown, seen_at: isoOrNull(seenAtMs) },
    })),
    waits: [...describeWaits(known)],
    missing: [...describeMissing(known)],
    dashboard: hasDashboard ? `/dashboard#server/${known.serverUuid}` : null,
  };
}

/** A scheduler's decision as it was kept. */
export function decisionView({ serverUuid, requestId, scheduler, atMs, decision }: DecisionRecord) {
  return {
    ...{ server: serverUuid, request_id: requestId, scheduler, at: isoSeconds(atMs) },
    decision: { ...decision },
  };
}

function taskView(task: TaskLife): LifeAnswer["tasks"][number] {
  const { id, kind, askedBy, outcome, stage, reason, move } = task;
  return {
    ...{ id, kind, asked_by: askedBy && callerView(askedBy) },
    ...{ at: iso(task.createdAtMs), ended_at: isoOrNull(task.endedAtMs), outcome, stage, reason },
    conductors: task.conductors.map(({ atMs, conductorId, name }) => ({ at: iso(atMs), id: conductorId, name })),
    stages: task.stages.map(({ atMs, stage: reached, host }) => ({ at: iso(atMs), stage: reached, host })),
    attempts: task.attempts.map(attemptView),
    hops: task.hops.map(({ atMs, from, to, reason: why, gaveBack, claimed }) => ({
      ...{ at: iso(atMs), from, to, reason: why, gave_back: claimView(gaveBack), claimed: claimView(claimed) },
    })),
    move: move && { ...move },
  };
}

function attemptView({ host, startedAtMs, endedAtMs, result, reason, conductors, claim }: AttemptLife) {
  return {
    ...{ host, at: iso(startedAtMs), ended_at: isoOrNull(endedAtMs), result, reason },
    ...{ conductors: [...conductors], claim: claimView(claim) },
  };
}

function claimView(items: AttemptLife["claim"]) {
  return items.map(({ provider, resourceClass, amount }) => ({ provider, class: resourceClass, amount }));
}

function moveView({ request, state, fault, updatedAtMs }: MoveRecord): LifeAnswer["requested_moves"][number] {
  return {
    ...{ id: request.id, kind: request.kind, state, fault, asked_by: callerView(request) },
    ...{ at: iso(request.createdAtMs), updated_at: iso(updatedAtMs) },
  };
}

function callerView({ requestId, userId, projectId }: Caller) {
  return { request_id: requestId, user_id: userId, project_id: projectId };
}

const iso = (atMs: number): string => new Date(atMs).toISOString();
const isoOrNull = (atMs: number | null): string | null => (atMs === null ? null : iso(atMs));
