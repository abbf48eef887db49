import { randomUUID } from "node:crypto";
import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import type { OperationKind } from "../../../../core/tasks/operation-kinds.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { callerOf } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, conflict, Fault, notFound } from "../../http/fault.ts";
import { volumeNotFound } from "../../volume/change-volumes.ts";
import { type ActionTarget, findTarget } from "../server-actions/action-target.ts";
import { beginInCell } from "../server-actions/begin-in-cell.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import type { AttachmentCall } from "./begin-attachment.ts";
import { attachmentOfServer } from "./find-attachment.ts";
import { refuseInDoubt } from "./refuse-in-doubt.ts";
import { serverVolumeOf } from "./server-volume-of.ts";
import type { ServerVolumes } from "./server-volumes.ts";
import { stillWith } from "./still-with.ts";

/** The operations that replace a volume: on the server's host, and where a move waits for its confirmation. */
const KINDS = ["swap-volume", "swap-volume-unconfirmed"] as const satisfies readonly OperationKind[];

/**
 * Replaces a server's volume by another one, as Cinder asks for it when it migrates an attached volume to another back end. Returns as soon as the server's cell
 * has begun it; the cell tells Cinder how it ends. Refuses an unknown volume (404), one that Cinder does not migrate (409), another volume that does not fit (400),
 * and a server that has another operation under way or whose status does not allow it, or a volume that is in doubt (409).
 *
 * The other volume is reserved for the server first, as in Nova. Cinder asks once for each attachment of its volume, and gives the migration up if one of these calls is refused. A server that moves, or that has
 * just moved, has one on each host. So a call for a replacement that is under way is accepted, and changes nothing.
 *
 * Source: `_update_volume_swap` of Nova's volume attachments, `swap_volume` of its compute API
 */
export async function swapVolume(
  deps: ServerDeps,
  context: AttachmentCall,
  { id, volumeId }: { readonly id: string; readonly volumeId: string },
  otherId: string,
): Promise<void> {
  const { call } = context;
  const { volumes } = deps;
  if (volumes === null) throw volumeNotFound(volumeId);
  const [own, other] = [storedSpelling(volumeId), storedSpelling(otherId)];
  const [found] = await volumes.find([own], call);
  if (found === undefined) throw volumeNotFound(volumeId);
  if (found.migrationStatus === "")
    throw conflict(`volume ${own} is not migrating; this API should only be called by Cinder`);
  const [replacement] = await volumes.find([other], call);
  if (replacement === undefined) throw badRequest(volumeNotFound(otherId).message);
  const missing = () => notFound(`No volume Block Device Mapping with id ${volumeId.slice(0, 100)}.`);
  if (await isUnderWay(deps, call, id, { own, other })) return;
  const target = await findTarget(deps, call, { id, action: "swap_volume" });
  const serverUuid = target.server.uuid;
  const row = await attachmentOfServer(volumes, serverUuid, own);
  // The row may not know yet that the cell has attached the volume.
  if (row === null || target.server.spec.volumes.every((volume) => volume.volumeId !== own)) throw missing();
  // The host of a guest that may use a former replacement can neither copy the volume to this one nor say that the guest keeps its own.
  const settled = (now: ServerSpec): ServerSpec => {
    const spec = { ...now, volumes: now.volumes.filter((one) => one.volumeId === own) };
    refuseInDoubt({ action: "swap_volume", server: { ...target.server, spec } });
    return now;
  };
  settled(target.server.spec);
  const outcome = await volumes.reserveReplacement({ own: found, other: replacement, serverUuid }, call);
  if (outcome.kind === "refused") throw outcome.fault;
  const volume = { ...serverVolumeOf(row), replacedBy: other };
  const taskId = randomUUID();
  const asked = { carrier: context.carrier, taskId, askedBy: callerOf(call) };
  const kind = target.server.status === "VERIFY_RESIZE" ? "swap-volume-unconfirmed" : "swap-volume";
  const after = (now: ServerSpec): ServerSpec => settled(stillWith(volume, missing)(now));
  const request = { kind, ...asked, volume, after } as const;
  try {
    await beginInCell(deps, target, request);
  } catch (error) {
    // After any other error it may have begun. What Cinder keeps for a server that does not get the volume is found by the sweep of attachments.
    if (error instanceof Fault && error.status < 500) await takeBack(volumes, target, taskId, outcome.attachmentId);
    throw error;
  }
}

/** Whether the server's cell replaces the volume by this other one already. */
async function isUnderWay(
  { finder, cells }: Pick<ServerDeps, "finder" | "cells">,
  call: AttachmentCall["call"],
  id: string,
  { own, other }: { readonly own: string; readonly other: string },
): Promise<boolean> {
  const record = await finder.find(id, call);
  const cell = record === null || record.cell === null ? undefined : cells.get(record.cell);
  const answer = await cell?.operations((store) => store.tasksOf(record?.serverUuid ?? ""));
  if (answer?.kind !== "answer") return false;
  return answer.value.some(({ outcome, task: { work } }) => {
    if (outcome !== null || work?.$case !== "operate") return false;
    const { kind, volume } = work.value;
    return KINDS.some((one) => one === kind) && volume?.volumeId === own && volume.replacedBy === other;
  });
}

/** Gives the reservation back, after the operation was closed in the cell, so that it cannot begin afterwards. */
async function takeBack(
  volumes: ServerVolumes,
  { cell, server }: ActionTarget,
  taskId: string,
  attachmentId: string,
): Promise<void> {
  const answer = await cell.operations((store) => store.closeTasks([{ taskId, serverUuid: server.uuid }]));
  if (answer.kind !== "answer" || answer.value[0] !== "closed") return;
  try {
    await volumes.giveUpReplacement(attachmentId);
  } catch (error) {
    if (!(error instanceof BlockStorageError)) throw error;
  }
}
