import type { Task } from "../../proto/gen/berth/cell.ts";
import type { RescueImage, Selection, ServerSpec, ServerVolume, VolumeSnapshot } from "../../proto/gen/berth/shared.ts";
import { assert } from "../assert.ts";
import type { AllocationItem } from "../ledger/model.ts";
import { itemsOf, type MoveParties } from "./move-change.ts";
import { isMove, OPERATIONS, type OperationKind } from "./operation-kinds.ts";
import { operationOf } from "./operation-record.ts";
import { attemptIdOf, SERVER_STATUSES, type ServerStatus } from "./server.ts";

/** A place where a guest of the server is, or may be. */
export interface PlaceOf {
  readonly host: string;
  readonly attemptId: string;
  readonly items: readonly AllocationItem[];
}

/** The content of a task of kind `operate` in the form that its state machine reads. */
export interface OperationFacts {
  readonly taskId: string;
  readonly kind: OperationKind;
  readonly isMove: boolean;
  /** The place where the server was or is. Null when it has no place. */
  readonly source: PlaceOf | null;
  readonly selections: readonly Selection[];
  /** The place to which the move brought the server. Only for operations about a move that waits for its confirmation. */
  readonly destination: PlaceOf | null;
  readonly before: ServerSpec;
  readonly after: ServerSpec;
  readonly statusBefore: ServerStatus;
  readonly migrationUuid: string;
  readonly parties: MoveParties;
  /** Whether the server must run after the operation, or after a failed rescue: a server that ran, that is in ERROR, or that was on no host. */
  readonly runs: boolean;
  /** Whether the guest is paused after a move, at whichever host it is then. */
  readonly pauses: boolean;
  /** Only for an evacuation: it may take the server from a host that is merely unseen. */
  readonly fenceWaived: boolean;
  /** Only for a rescue: the image from which the guest is booted. */
  readonly rescueImage: RescueImage | null;
  /** Only for attaching, detaching, extending, replacing and reimaging a volume. The volume of a reimage has the id of the image as its `imageRef`. */
  readonly volume: ServerVolume | null;
  /** Only for making and deleting a snapshot of a volume. */
  readonly snapshot: VolumeSnapshot | null;
}

/** Asserts that the task is an operation. */
export function factsOf(task: Task): OperationFacts {
  const { kind, operation, server } = operationOf(task);
  const { statusBefore, migrationUuid, selections } = operation;
  const status = SERVER_STATUSES.find((one) => one === statusBefore);
  assert(status !== undefined, `task ${task.id}: no such status: ${statusBefore}`);
  const source = placeOf(operation.source);
  return {
    taskId: task.id,
    kind,
    isMove: isMove(kind),
    source,
    selections,
    destination: placeOf(operation.destination),
    before: operation.before ?? server,
    after: server,
    statusBefore: status,
    migrationUuid,
    parties: { server, migrationUuid, source: source?.items ?? [] },
    runs: status === "ACTIVE" || status === "ERROR" || OPERATIONS[kind].source === "none",
    pauses: kind === "live-migrate-paused",
    fenceWaived: operation.fenceWaived,
    rescueImage: operation.rescueImage ?? null,
    volume: operation.volume ?? null,
    snapshot: operation.snapshot ?? null,
  };
}

function placeOf(place: Parameters<typeof asPlace>[0] | undefined): PlaceOf | null {
  return place === undefined ? null : asPlace(place);
}

function asPlace(place: {
  readonly host: string;
  readonly attemptId: string;
  readonly allocation?: Parameters<typeof itemsOf>[0];
}): PlaceOf {
  return { host: place.host, attemptId: place.attemptId, items: itemsOf(place.allocation) };
}

/** The place of the guest that the server uses while nothing moves it: of a move that waits for its confirmation, that at the destination. */
export const usedPlaceOf = ({ source, destination }: Pick<OperationFacts, "source" | "destination">): PlaceOf | null =>
  destination ?? source;

/** The place to which a selection brings the server. Operations about a move that waits have only one destination. */
export function destinationOf(facts: OperationFacts, selection: number): PlaceOf | null {
  if (facts.destination !== null) return facts.destination;
  const chosen = facts.selections[selection];
  if (chosen === undefined) return null;
  return {
    host: chosen.host,
    attemptId: attemptIdOf(facts.taskId, selection),
    items: itemsOf(chosen.allocation),
  };
}
