import { randomUUID } from "node:crypto";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { BeginOutcome } from "../../core/stores/cell/operation-store.ts";
import type { OperationKind } from "../../core/tasks/operation-kinds.ts";
import { type PlannedOperation, planOperation } from "../../core/tasks/plan-operation.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import type { Selection, ServerVolume, VolumeSnapshot } from "../../proto/gen/berth/shared.ts";
import { hostName, providerOf, serverId, vcpusOf } from "../contract/cell-fixtures.ts";

/** A destination with one provider, of which the server takes this many VCPUs. */
export function selectionOf(host: number, vcpus = 1): Selection {
  return {
    host: hostName(host),
    rootProvider: providerOf(host),
    availabilityZone: "nova",
    allocation: { items: vcpusOf(host, vcpus), mappings: { "": providerOf(host) } },
  };
}

/** The volume that a test attaches to the server. */
export function volumeOf(server: number): ServerVolume {
  return {
    volumeId: `0000feed-0000-4000-8000-${String(server).padStart(12, "0")}`,
    attachmentId: `0000beef-0000-4000-8000-${String(server).padStart(12, "0")}`,
    ...{ device: "/dev/sda", tag: "", deleteOnTermination: false, sizeBytes: 2 ** 30, isRoot: false },
    ...{ imageRef: "", imageProperties: {}, inCinder: false, connection: "", isMultiattach: false },
    replacedBy: "",
    file: "",
  };
}

export interface RequestedOperation {
  readonly server: number;
  /** The server's UUID, if it is not that of the number. */
  readonly uuid?: string;
  readonly kind: OperationKind;
  /** The destinations of a move, best first. */
  readonly hosts?: readonly number[];
  readonly vcpus?: number;
  readonly unseenMs?: number;
  readonly fenceWaived?: boolean;
  readonly taskId?: string;
  /** For attaching, detaching and replacing a volume. */
  readonly volume?: ServerVolume;
  readonly snapshot?: VolumeSnapshot;
}

export type Begun =
  | { readonly task: Task; readonly outcome: BeginOutcome }
  | { readonly task: null; readonly outcome: Exclude<PlannedOperation, { kind: "planned" }> };

/** Plans an operation from the store's present facts, and begins it. */
export async function beginOperationOn(store: CellStore, requested: RequestedOperation): Promise<Begun> {
  const { kind, hosts = [], vcpus = 1, taskId = randomUUID(), unseenMs = 0, fenceWaived = false } = requested;
  const { uuid = serverId(requested.server) } = requested;
  const [server] = await store.servers([uuid]);
  if (server === undefined) throw new Error(`no server ${requested.server}`);
  const [holding] = await store.holdings([uuid]);
  const [migration] = await store.migrations({ serverUuid: uuid, inFlightOnly: true, limit: 1 });
  const flavor = server.spec.flavor && { ...server.spec.flavor, vcpus };
  const after = kind === "resize" ? { ...server.spec, flavor } : server.spec;
  if (migration?.operation === null) throw new Error(migration.note);
  const planned = planOperation({
    taskId,
    kind,
    server,
    holding: holding ?? null,
    selections: hosts.map((host) => selectionOf(host, vcpus)),
    after,
    unseenMs,
    fenceWaived,
    volume: requested.volume ?? volumeOf(requested.server),
    snapshot: requested.snapshot,
    ...(kind === "rescue" && { rescueImage: { imageRef: server.spec.imageRef, imageProperties: {} } }),
    ...(migration === undefined ? {} : { migration }),
  });
  if (planned.kind !== "planned") return { task: null, outcome: planned };
  const [outcome] = await store.begin([planned.begin]);
  if (outcome === undefined) throw new Error("no answer");
  return { task: planned.begin.task, outcome };
}
