import { randomUUID } from "node:crypto";
import type { Holding } from "../../../../core/ledger/holding.ts";
import type { BeginOutcome } from "../../../../core/stores/cell/operation-store.ts";
import { GUEST_IN_QUARANTINE } from "../../../../core/stores/cell/quarantine.ts";
import { hostInUse, unfencedHost } from "../../../../core/tasks/evacuation-rule.ts";
import type { ReadableMigration } from "../../../../core/tasks/migration.ts";
import { isAboutWaitingMove, OPERATIONS, type OperationKind } from "../../../../core/tasks/operation-kinds.ts";
import { planOperation } from "../../../../core/tasks/plan-operation.ts";
import { homeMapping } from "../../../../core/tasks/port-change.ts";
import type { Server, ServerStatus } from "../../../../core/tasks/server.ts";
import { changedSpec } from "../../../../core/tasks/user-changes.ts";
import type { Caller, Task } from "../../../../proto/gen/berth/cell.ts";
import type {
  RescueImage,
  Selection,
  ServerSpec,
  ServerVolume,
  VolumeSnapshot,
} from "../../../../proto/gen/berth/shared.ts";
import type { CellAnswer } from "../../cells/cell-client.ts";
import type { ApiEvents } from "../../events.ts";
import { badRequest, conflict, unavailable } from "../../http/fault.ts";
import { serverNotFound } from "../servers/request-finder.ts";
import { type ActionTarget, busy, wrongState } from "./action-target.ts";

/** Maximum number of reads of a server that changes each time. */
const TRIES_MAX = 5;

/**
 * Begins an operation that needs no other host, in one transaction in the server's cell; the cell's conductors carry it out. Refuses an
 * operation that the server's state does not allow or that conflicts with another operation. Returns the move that the operation is about, if it waits for its confirmation.
 *
 * Cost: three questions to the cell.
 */
export async function beginInCell(
  deps: { readonly events: ApiEvents },
  target: ActionTarget,
  request: {
    readonly kind: OperationKind;
    readonly carrier: Readonly<Record<string, string>>;
    readonly askedBy: Caller;
    /** The id of the operation. A new one if it is absent. */
    readonly taskId?: string;
    /** For a rebuild, returns the changed spec of the server. */
    readonly after?: (before: ServerSpec) => ServerSpec;
    /** For a rescue, the image from which the guest is booted. */
    readonly rescueImage?: RescueImage;
    /** Called once every check has passed, before the operation begins. May be called several times. */
    readonly prepare?: () => Promise<void>;
    /** The volume that is attached, detached, extended, replaced or reimaged. */
    readonly volume?: ServerVolume;
    /** The snapshot of the volume that is made or deleted. */
    readonly snapshot?: VolumeSnapshot;
    /** The statuses in which the call may begin the operation, if these are fewer than the operation allows. */
    readonly allowedFrom?: readonly ServerStatus[] | undefined;
  },
): Promise<ReadableMigration | undefined> {
  const { taskId = randomUUID() } = request;
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const planned = await plan(target, taskId, request);
    if (planned === null) continue;
    const { begin, migration } = planned;
    await request.prepare?.();
    const outcome = answered(target, await target.cell.begin(begin));
    if (outcome.kind === "changed") continue;
    settle(target, outcome);
    tell(deps, target, begin.task, request.carrier);
    return migration;
  }
  throw conflict(`Instance ${target.server.uuid} kept changing; try again.`);
}

/** Null if the server has changed while it was read. */
async function plan(target: ActionTarget, taskId: string, request: Parameters<typeof beginInCell>[2]) {
  const { action, cell } = target;
  const { uuid } = target.server;
  const { kind, after, askedBy, rescueImage, volume, snapshot } = request;
  // The server is read first, because every later change raises its revision.
  const server = answered(target, await cell.server(uuid));
  if (server === null || server.status === "DELETED") throw serverNotFound(uuid);
  const holding = answered(target, await cell.holding(uuid));
  const migration = isAboutWaitingMove(kind) ? await waitingMigration(target) : undefined;
  // The task contains the changes of users since the server's spec was written in its cell.
  const { changes } = target.record;
  const current = changedSpec(server.spec, changes);
  const inPlace = kind === "rebuild" || kind === "reimage" ? [await hereAgain(target, server, holding)] : [];
  const planned = planOperation({
    ...{ taskId, kind, server, selections: inPlace },
    holding,
    askedBy,
    rescueImage,
    volume,
    snapshot,
    ...(after === undefined && changes === null ? {} : { after: after?.(current) ?? current }),
    ...(migration === undefined ? {} : { migration }),
  });
  switch (planned.kind) {
    case "planned":
      // Another call may have changed the status since the target was found.
      if (request.allowedFrom?.includes(server.status) === false) throw wrongState({ action, uuid }, server.status);
      return { begin: planned.begin, migration };
    case "busy":
      throw busy({ action, uuid }, planned.running);
    case "wrong-status":
      throw wrongState({ action, uuid }, planned.status);
    case "nothing-to-confirm":
      // The server waited for the end of its move when it was read, and that has begun since.
      if (OPERATIONS[kind].confirmation === "unchanged") return null;
      throw badRequest("Instance has not been resized.");
    default:
      return planned satisfies never;
  }
}

/** Returns the selection of a rebuild: the server's own host, with its present allocations and providers. */
async function hereAgain(target: ActionTarget, server: Server, holding: Holding | null): Promise<Selection> {
  const { host, attemptId, spec } = server;
  const claimed = attemptId === null ? null : answered(target, await target.cell.claimed(attemptId));
  const allocation = {
    items: (holding?.items ?? []).map((item) => ({ ...item })),
    mappings: { ...homeMapping(spec, claimed) },
  };
  return { host: host ?? "", rootProvider: "", availabilityZone: "", allocation };
}

/** Returns the move that waits to be confirmed or reverted. Refuses a move whose record this version cannot read. */
async function waitingMigration(target: ActionTarget): Promise<ReadableMigration | undefined> {
  const serverUuid = target.server.uuid;
  const query = { serverUuid, inFlightOnly: true, limit: 1 };
  const [migration] = answered(target, await target.cell.operations((store) => store.migrations(query)));
  if (migration?.operation === null)
    throw conflict(`Cannot '${target.action}' instance ${serverUuid}: ${migration.note}`);
  return migration;
}

/** Throws the error of every outcome except a begun operation. */
function settle({ action, server }: ActionTarget, outcome: Exclude<BeginOutcome, { kind: "changed" }>): void {
  const subject = { action, uuid: server.uuid };
  switch (outcome.kind) {
    case "begun":
    case "already-begun":
      return;
    case "busy":
      throw busy(subject, outcome.running);
    case "gone":
      throw serverNotFound(server.uuid);
    case "host-seen":
      throw conflict(hostInUse(server.host ?? "its host"));
    case "host-unfenced":
      throw conflict(unfencedHost(server.host ?? "its host"));
    case "quarantined":
      throw conflict(`Cannot '${action}' instance ${server.uuid}: ${GUEST_IN_QUARANTINE}.`);
    case "closed":
      throw conflict(
        `Cannot '${action}' instance ${server.uuid}: the call took so long that it was given up. Try again.`,
      );
    case "no-capacity":
      throw conflict(`Cannot '${action}' instance ${server.uuid}: its host has no room for it.`);
    case "refused":
    case "stale":
      throw conflict(`Cannot '${action}' instance ${server.uuid}: ${outcome.why}`);
    default:
      outcome satisfies never;
  }
}

/** Notifies the cell's conductors of a stored task. They would find the task without the message too. */
export function tell(
  { events }: { readonly events: ApiEvents },
  { cell, server }: Pick<ActionTarget, "cell" | "server">,
  task: Task,
  carrier: Readonly<Record<string, string>>,
): void {
  cell.publishTask(task, carrier).catch((error: unknown) => events.publishFailed(server.uuid, error));
}

function answered<Value>({ cell }: ActionTarget, answer: CellAnswer<Value>): Value {
  if (answer.kind === "answer") return answer.value;
  throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
}
