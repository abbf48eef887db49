import { randomUUID } from "node:crypto";
import { badRequest, Fault } from "../../http/fault.ts";
import { volumeNotFound } from "../../volume/change-volumes.ts";
import { statusOf } from "../../volume/volume-view.ts";
import { findTarget } from "../server-actions/action-target.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { type AttachmentCall, beginAttachment, requireAttachable } from "./begin-attachment.ts";
import { confirmEnded } from "./confirm-ended.ts";
import { findAttachment } from "./find-attachment.ts";
import { ROOT_DEVICE } from "./root-device.ts";

/**
 * Detaches a volume from a server. It stays the server's until its host has said that the guest does not have it. Refuses a volume that the server does
 * not have (404), that it boots from (403), or that is attaching or detaching (400), and a server that has another operation under way or whose status does not allow it (409).
 */
export async function detachVolume(
  deps: ServerDeps,
  context: AttachmentCall,
  id: string,
  volumeId: string,
): Promise<void> {
  const target = await findTarget(deps, context.call, { id, action: "detach_volume" });
  requireAttachable(target, context.call);
  const { volumes } = deps;
  if (volumes === null) throw volumeNotFound(volumeId);
  const server = { uuid: target.server.uuid, asked: id };
  const volume = await findAttachment(volumes, server, volumeId);
  if (volume.attachment.device === ROOT_DEVICE) throw new Fault(403, "Cannot detach a root device volume");
  const taskId = randomUUID();
  const begin = () => volumes.beginDetaching(volume.id, { serverUuid: server.uuid, taskId });
  if (!(await begin())) {
    const now = await findAttachment(volumes, server, volumeId);
    const isInUse = await confirmEnded(volumes, target.cell, now, deps.clock.now());
    if (!(isInUse && (await begin())))
      throw badRequest(
        `Invalid volume: volume '${volume.id}' status must be 'in-use'. Currently in '${statusOf(now)}' status`,
      );
  }
  const detaching = { ...volume, attachment: { ...volume.attachment, phase: "detaching", taskId } as const };
  await beginAttachment({ ...deps, volumes }, context, target, detaching);
}
