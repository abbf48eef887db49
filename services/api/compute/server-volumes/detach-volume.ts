import { randomUUID } from "node:crypto";
import type { Server } from "../../../../core/tasks/server.ts";
import type { KnownCall } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest } from "../../http/fault.ts";
import { volumeNotFound } from "../../volume/change-volumes.ts";
import { statusOf } from "../../volume/volume-view.ts";
import { findTarget } from "../server-actions/action-target.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { type AttachmentCall, beginAttachment, refuseShelvedEarly, requireAttachable } from "./begin-attachment.ts";
import { confirmEnded } from "./confirm-ended.ts";
import { type AttachedVolume, attachmentOfServer, findAttachment } from "./find-attachment.ts";
import { refuseDetachInDoubt } from "./refuse-in-doubt.ts";
import { ROOT_DEVICE } from "./root-device.ts";
import type { ServerVolumes } from "./server-volumes.ts";

const ACTION = "detach_volume";

/**
 * Detaches a volume from a server. It stays the server's until its host has said that the guest does not have it. Refuses, in Nova's order, a volume that the server does
 * not have (404), one that it boots from (400), a server that has another operation under way or whose status does not allow it (409), and a volume that is attaching or detaching, or in doubt while a move waits for its confirmation (400).
 */
export async function detachVolume(
  deps: ServerDeps,
  context: AttachmentCall,
  id: string,
  volumeId: string,
): Promise<void> {
  const { call } = context;
  const { volumes } = deps;
  const whenFound = async (server: Server) => {
    refuseShelvedEarly({ action: ACTION, server }, call);
    await findDetachable(volumes, { uuid: server.uuid, asked: id }, volumeId, call);
  };
  const target = await findTarget(deps, call, { id, action: ACTION, whenFound });
  requireAttachable(target, call);
  if (volumes === null) throw volumeNotFound(volumeId);
  const server = { uuid: target.server.uuid, asked: id };
  const volume = await findDetachable(volumes, server, volumeId, call);
  refuseDetachInDoubt(target.server, volume.id);
  const taskId = randomUUID();
  const begin = () => volumes.beginDetaching(volume.id, { serverUuid: server.uuid, taskId });
  if (!(await begin())) {
    await confirmEnded(volumes, target.cell, await findAttachment(volumes, server, volumeId), deps.clock.now());
    // The settler may have confirmed it since this call first asked, so it begins again in any case.
    if (!(await begin())) {
      const status = statusOf(await findAttachment(volumes, server, volumeId));
      throw badRequest(
        `Invalid volume: volume '${volume.id}' status must be 'in-use'. Currently in '${status}' status`,
      );
    }
  }
  const detaching = { ...volume, attachment: { ...volume.attachment, phase: "detaching", taskId } as const };
  await beginAttachment({ ...deps, volumes }, context, target, detaching);
}

/** Finds a volume of the server. Refuses an unknown one and one that the server does not have (404), and one that it boots from (400). */
async function findDetachable(
  volumes: ServerVolumes | null,
  server: { readonly uuid: string; readonly asked: string },
  volumeId: string,
  call: KnownCall,
): Promise<AttachedVolume> {
  const own = await attachmentOfServer(volumes, server.uuid, volumeId);
  if (own === null && ((await volumes?.find([storedSpelling(volumeId)], call)) ?? []).length === 0)
    throw volumeNotFound(volumeId);
  const volume = own ?? (await findAttachment(volumes, server, volumeId));
  if (volume.attachment.device === ROOT_DEVICE) throw badRequest("Cannot detach a root device volume");
  return volume;
}
