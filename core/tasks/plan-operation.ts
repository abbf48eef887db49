import type { Caller, Operation, Task } from "../../proto/gen/berth/cell.ts";
import type { RescueImage, Selection, ServerSpec, ServerVolume, VolumeSnapshot } from "../../proto/gen/berth/shared.ts";
import { STOP_CAUSES } from "../agent/stop-cause.ts";
import { assert } from "../assert.ts";
import type { Holding } from "../ledger/holding.ts";
import { parseAttemptId } from "./attempt-id.ts";
import { isStoppedWithGuest } from "./guest-fate.ts";
import type { ReadableMigration } from "./migration.ts";
import { factsOf } from "./operation-facts.ts";
import { isAboutWaitingMove, isMove, OPERATIONS, type OperationKind } from "./operation-kinds.ts";
import { firstStage } from "./operation-stages.ts";
import type { BeginOperation } from "./operation-step.ts";
import { writeOf } from "./operation-writes.ts";
import { SERVER_STATUSES, type Server, type ServerStatus } from "./server.ts";
import { volumesAfter } from "./server-volumes.ts";

/** A requested operation, with everything that the cell reported about the server. */
export interface OperationRequest {
  /** A new UUID for the task and, for a move, its migration. */
  readonly taskId: string;
  readonly kind: OperationKind;
  readonly server: Server;
  /** The server's allocation, or null when it holds nothing. */
  readonly holding: Holding | null;
  /** For a move: destinations in the server's cell, best first, at least one. For a rebuild: the present host and allocation. */
  readonly selections?: readonly Selection[];
  /** The server's spec after the operation: with a resize's new flavor or a rebuild's new image. */
  readonly after?: ServerSpec;
  /** For an operation about a move that waits for its confirmation: that move. */
  readonly migration?: ReadableMigration;
  /** For an evacuation: it may take the server from a host that no operator has forced down, once its agent was unseen for `unseenMs`. */
  readonly fenceWaived?: boolean;
  readonly unseenMs?: number;
  /** For a stop: the guest has stopped already, without an order. */
  readonly followsGuest?: boolean;
  /** For a rescue: the image from which the guest is booted. */
  readonly rescueImage?: RescueImage | undefined;
  /** For attaching, detaching, extending, replacing and reimaging a volume, and for snapshots of one. */
  readonly volume?: ServerVolume | undefined;
  /** For making and deleting a snapshot of the volume. */
  readonly snapshot?: VolumeSnapshot | undefined;
  /** The caller. Absent when no client asked for the operation. */
  readonly askedBy?: Caller;
}

export type PlannedOperation =
  | { readonly kind: "planned"; readonly begin: BeginOperation }
  /** Another operation is running. A server has one at a time. */
  | { readonly kind: "busy"; readonly running: string }
  /** The operation is not allowed in this status. */
  | { readonly kind: "wrong-status"; readonly status: ServerStatus; readonly allowed: readonly ServerStatus[] }
  /** There is no move that waits for a confirm or revert. */
  | { readonly kind: "nothing-to-confirm" };

const FOLLOWED_FROM = SERVER_STATUSES.filter((status) =>
  STOP_CAUSES.some((cause) => isStoppedWithGuest(status, cause)),
);

/** The operation in the form that a cell's store begins. Asserts that a move has a destination. */
export function planOperation(request: OperationRequest): PlannedOperation {
  const { taskId, kind, server, migration } = request;
  const definition = OPERATIONS[kind];
  const allowed = request.followsGuest ? FOLLOWED_FROM : definition.allowedFrom;
  if (server.taskState !== null) return { kind: "busy", running: server.taskState };
  const isNowhere = server.host === null && definition.source !== "none";
  if (isNowhere || !allowed.includes(server.status)) return { kind: "wrong-status", status: server.status, allowed };
  const isAboutMove = isAboutWaitingMove(kind);
  if (isAboutMove && (migration === undefined || migration.ended || migration.status !== "finished"))
    return { kind: "nothing-to-confirm" };
  const operation = isAboutMove && migration ? whileWaiting(request, migration) : changing(request);
  const { askedBy } = request;
  const task: Task = {
    ...{ id: taskId, server: newSpecOf(request, operation), work: { $case: "operate", value: operation } },
    ...(askedBy !== undefined && { askedBy }),
  };
  const facts = factsOf(task);
  const transition = {
    from: null,
    to: firstStage(kind),
    selection: 0,
    reason: "",
    noted: [],
    unseenMs: request.unseenMs ?? 0,
  };
  const write = writeOf(facts, transition);
  return { kind: "planned", begin: { task, revision: server.revision, status: server.status, write } };
}

function newSpecOf({ kind, server, after, volume }: OperationRequest, { before }: Operation): ServerSpec {
  const { newSpec } = OPERATIONS[kind];
  const requested = withFiles(kind, after ?? server.spec);
  switch (newSpec) {
    case "requested":
      return requested;
    case "restored":
      return before ?? server.spec;
    case "with-volume":
    case "without-volume":
      assert(volume !== undefined, `the request of a ${kind} names no volume`);
      return { ...requested, volumes: volumesAfter(requested.volumes, newSpec === "with-volume", volume) };
  }
}

/**
 * Without an attachment of a host, Cinder makes and deletes snapshots alone. So it decides which files are used by a server that has been on no host, or whose boot volume it takes from
 * the host to fill it.
 */
function withFiles(kind: OperationKind, spec: ServerSpec): ServerSpec {
  if (OPERATIONS[kind].source !== "none" && kind !== "reimage") return spec;
  return {
    ...spec,
    volumes: spec.volumes.map((one) => (kind === "reimage" && !one.isRoot ? one : { ...one, file: "" })),
  };
}

function changing({
  taskId,
  kind,
  server,
  holding,
  selections = [],
  fenceWaived = false,
  rescueImage,
  volume,
  snapshot,
}: OperationRequest): Operation {
  const items = (holding?.items ?? []).map((item) => ({ ...item }));
  const source =
    server.host === null
      ? undefined
      : { host: server.host, attemptId: server.attemptId ?? "", allocation: { items, mappings: {} } };
  return {
    kind,
    source,
    selections: [...selections],
    destination: undefined,
    before: server.spec,
    statusBefore: server.status,
    migrationUuid: isMove(kind) ? taskId : "",
    fenceWaived,
    rescueImage,
    volume,
    snapshot,
  };
}

/**
 * An operation about a move that waits for its confirmation names the places of the move. Volumes may have been attached and detached since, to the guest of the source, too. So a revert brings back
 * the spec from before the move with the present volumes.
 */
function whileWaiting({ kind, server, volume }: OperationRequest, migration: ReadableMigration): Operation {
  const { operation, destHost, destAttemptId } = migration;
  const settles = OPERATIONS[kind].confirmation === "ended";
  const former = operation.before ?? server.spec;
  const taken = operation.selections[parseAttemptId(destAttemptId)?.selection ?? 0];
  return {
    kind,
    source: operation.source,
    selections: [],
    destination: { host: destHost, attemptId: destAttemptId, allocation: taken?.allocation },
    before: settles ? { ...former, volumes: server.spec.volumes } : server.spec,
    statusBefore: settles ? operation.statusBefore : server.status,
    migrationUuid: migration.uuid,
    fenceWaived: false,
    rescueImage: undefined,
    volume,
    snapshot: undefined,
  };
}
