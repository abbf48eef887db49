import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import { OPERATIONS, type OperationKind } from "../../../../core/tasks/operation-kinds.ts";
import type { ServerStatus } from "../../../../core/tasks/server.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { callerOf, type KnownCall } from "../../http/call.ts";
import { Fault } from "../../http/fault.ts";
import { type ActionTarget, wrongState } from "../server-actions/action-target.ts";
import { beginInCell } from "../server-actions/begin-in-cell.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { awaitWithoutHost } from "./await-without-host.ts";
import { closeAttachment } from "./close-attachment.ts";
import type { AttachedVolume } from "./find-attachment.ts";
import { refuseDetachInDoubt } from "./refuse-in-doubt.ts";
import { serverVolumeOf } from "./server-volume-of.ts";
import type { ServerVolumes } from "./server-volumes.ts";

/** The operations that change a server's volumes: on its host, on none, and on both hosts of a move that waits for its confirmation. */
const KINDS = {
  attaching: ["attach-volume", "attach-volume-offloaded", "attach-volume-unconfirmed"],
  detaching: ["detach-volume", "detach-volume-offloaded", "detach-volume-unconfirmed"],
} as const satisfies Readonly<Record<string, readonly OperationKind[]>>;
/** From this microversion on, the volumes of a shelved server can change. */
const SHELVED_FROM_MINOR = 20;
const SHELVED: readonly ServerStatus[] = ["SHELVED", "SHELVED_OFFLOADED"];

/** What a call about a server's volumes needs. */
export interface AttachmentCall {
  readonly call: KnownCall;
  /** The trace of the call, which goes to the cell's conductors. */
  readonly carrier: Readonly<Record<string, string>>;
}

/** Whether the server is on no host, so that the next one connects its volumes. One that is deleted softly while it is offloaded is shown as SOFT_DELETED, and its cell knows only of the offload. */
export const isOffloaded = ({ server }: Pick<ActionTarget, "server">): boolean => server.host === null;

/** Refuses a server in a status in which its volumes cannot change (409). */
export function requireAttachable(target: ActionTarget, call: Pick<KnownCall, "minor">): void {
  const { action, server } = target;
  refuseShelvedEarly(target, call);
  if (!KINDS.attaching.some((kind) => OPERATIONS[kind].allowedFrom.includes(server.status)))
    throw wrongState({ action, uuid: server.uuid }, server.status);
}

/** Refuses a shelved server in the microversions in which its volumes cannot change (409). */
export function refuseShelvedEarly(
  { action, server: { status, uuid } }: Pick<ActionTarget, "action" | "server">,
  { minor }: Pick<KnownCall, "minor">,
): void {
  if (SHELVED.includes(status) && minor < SHELVED_FROM_MINOR) throw wrongState({ action, uuid }, status);
}

/**
 * Begins the operation that the volume's row names, and waits for its end if the server is on no host. If it is refused, the row is taken back, after the operation was closed in the cell. After
 * any other error it may have begun, and the settler finds out.
 */
export async function beginAttachment(
  deps: ServerDeps & { readonly volumes: ServerVolumes },
  { call, carrier }: AttachmentCall,
  target: ActionTarget,
  volume: AttachedVolume & { readonly isMultiattach?: boolean },
): Promise<void> {
  const { taskId, phase } = volume.attachment;
  if (taskId === null) throw new Error(`volume ${volume.id} waits for no operation`);
  const [onHost, onNone, onBoth] = KINDS[phase === "attaching" ? "attaching" : "detaching"];
  const kind = isOffloaded(target) ? onNone : target.server.status === "VERIFY_RESIZE" ? onBoth : onHost;
  // The server is read again before the operation begins.
  const after = (now: ServerSpec): ServerSpec => {
    if (phase === "detaching") refuseDetachInDoubt({ ...target.server, spec: now }, volume.id);
    return now;
  };
  const request = { kind, carrier, taskId, askedBy: callerOf(call), volume: serverVolumeOf(volume), after } as const;
  try {
    await beginInCell(deps, target, request);
  } catch (error) {
    // What Cinder does not end now is left to the settler, and the caller gets the reason of the refusal.
    if (error instanceof Fault && error.status < 500)
      await closeAttachment(deps.volumes, target.cell, volume, deps.clock.now(), { isRefused: true }).catch(onlyCinder);
    throw error;
  }
  if (kind === onNone) await awaitWithoutHost(target.cell, taskId, deps.clock);
}

/** Passes on an error that is not Cinder's. */
export function onlyCinder(error: unknown): void {
  if (!(error instanceof BlockStorageError)) throw error;
}
