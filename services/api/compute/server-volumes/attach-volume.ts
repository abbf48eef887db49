import { randomUUID } from "node:crypto";
import type { NewAttachment, VolumeRecord } from "../../../../core/stores/api/volume-store.ts";
import type { KnownCall } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, conflict } from "../../http/fault.ts";
import { readFlag } from "../../http/schema.ts";
import { volumeNotFound } from "../../volume/change-volumes.ts";
import { type ActionTarget, findTarget } from "../server-actions/action-target.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import type { AttachVolumeBody } from "./attachment-schemas.ts";
import {
  type AttachmentCall,
  beginAttachment,
  isOffloaded,
  onlyCinder,
  requireAttachable,
} from "./begin-attachment.ts";
import { refuseNewerFields } from "./newer-fields.ts";
import { refuseOldMultiattach } from "./refuse-old-multiattach.ts";
import { nextDevice, ROOT_DEVICE, VOLUMES_MAX } from "./root-device.ts";
import type { FoundRecord, ServerVolumes } from "./server-volumes.ts";

/**
 * Attaches a volume to a server. The volume is reserved first, and from then on no other server gets it, unless it is one that several may have. Refuses an unknown volume (404), one that a
 * server has (400), a server that has another operation under way or whose status does not allow it (409), and a device that is in use (409).
 *
 * A server that was offloaded has the volume without a host: Cinder shows it as in use, and the host that the server gets next connects it. As in Nova, such a server gets
 * no volume with a tag, and none that several servers may have (400), since it is not known whether that host can do this.
 *
 * Returns the attachment as soon as the server's cell has begun it, and for a server that was offloaded when the cell has carried it out.
 */
export async function attachVolume(
  deps: ServerDeps,
  context: AttachmentCall,
  id: string,
  { volumeAttachment: asked }: AttachVolumeBody,
): Promise<{ readonly volumeId: string; readonly attachment: NewAttachment }> {
  const { call } = context;
  refuseNewerFields(asked, call.minor);
  const { volumes } = deps;
  const find = async () => (await volumes?.find([storedSpelling(asked.volumeId)], call)) ?? [];
  // A server that is about to get this very volume has no task state in Nova.
  const whenBusy = async (serverUuid: string) => {
    const [volume] = await find();
    if (volume !== undefined && volume.attachment?.serverUuid === serverUuid) refuseTaken(volume);
  };
  const target = await findTarget(deps, call, { id, action: "attach_volume", whenBusy });
  requireAttachable(target, call);
  if (volumes === null) throw volumeNotFound(asked.volumeId);
  const [volume] = await find();
  if (volume === undefined) throw volumeNotFound(asked.volumeId);
  refuseTaken(volume);
  if (isOffloaded(target)) refuseOffloaded(asked, volume);
  refuseOldMultiattach(volume, call.minor);
  const requested = {
    ...{ serverUuid: target.server.uuid, cell: target.cell.name, taskId: randomUUID() },
    ...{ attachmentId: randomUUID(), mappingUuid: randomUUID(), tag: asked.tag ?? null },
    deleteOnTermination: readFlag(asked.delete_on_termination ?? false) ?? false,
  };
  const wanted = { ...requested, device: asked.device || null };
  const attachment = await reserve(volumes, { target, call }, volume, wanted);
  if (isOffloaded(target)) await finishWithoutHost(volumes, volume.id, attachment);
  const since = { phase: "attaching", attachedAtMs: null, phaseAgeMs: 0 } as const;
  const reserved = { ...volume, attachment: { ...attachment, ...since } };
  await beginAttachment({ ...deps, volumes }, context, target, reserved);
  return { volumeId: volume.id, attachment };
}

/** Gives back a volume that was released meanwhile, since no operation was begun for it: the caller can try again at once. What Cinder does not end now is left to the settler. */
async function finishWithoutHost(
  volumes: ServerVolumes,
  id: string,
  { attachmentId, taskId }: NewAttachment,
): Promise<void> {
  if (await volumes.finishWithoutHost(attachmentId)) return;
  if (taskId !== null) await volumes.release(id, taskId).catch(onlyCinder);
  throw conflict(`Volume ${id} was released while it was being attached; try again.`);
}

const DEVICE_TAKEN = { kind: "device-taken" } as const;

/** Reserves the volume under the device that was asked for, or else under the server's next free one. */
async function reserve(
  volumes: ServerVolumes,
  { target: { server }, call }: { readonly target: ActionTarget; readonly call: KnownCall },
  volume: FoundRecord,
  { device, ...requested }: Omit<NewAttachment, "device"> & { readonly device: string | null },
): Promise<NewAttachment> {
  for (let tries = 0; tries <= VOLUMES_MAX; tries += 1) {
    const own = await volumes.volumesOfServers([server.uuid]);
    const used = new Set([ROOT_DEVICE, ...own.flatMap(({ attachment }) => attachment?.device ?? [])]);
    const wanted = device ?? nextDevice(used);
    const attachment = { ...requested, device: wanted };
    const outcome = used.has(wanted) ? DEVICE_TAKEN : await volumes.reserve(volume, attachment, call);
    switch (outcome.kind) {
      case "reserved":
        return outcome.attachment;
      case "refused":
        throw outcome.fault;
      case "unknown":
        throw volumeNotFound(volume.id);
      case "taken": {
        const now = await volumes.volumes([volume.id]);
        if (volume.isMultiattach && now.some(({ attachment }) => attachment?.serverUuid === server.uuid))
          throw badRequest(`Invalid volume: volume ${volume.id} already attached`);
        if (!volume.isMultiattach) refuseTaken(now[0] ?? volume);
        break;
      }
      case "device-taken":
        if (device !== null) throw conflict(`The supplied device path (${device}) is in use.`);
        break;
      default:
        outcome satisfies never;
    }
  }
  throw conflict(`The volumes of instance ${server.uuid} kept changing; try again.`);
}

/** Source: `attach_volume` of Nova's compute API */
function refuseOffloaded({ tag }: AttachVolumeBody["volumeAttachment"], { isMultiattach }: FoundRecord): void {
  if (tag) throw badRequest("Tagged volume attachment is not supported for shelved-offloaded instances.");
  if (isMultiattach)
    throw badRequest("Attaching multiattach volumes is not supported for shelved-offloaded instances.");
}

/** Source: `_check_volume_already_attached` of Nova's compute API. */
function refuseTaken({ id, attachment }: VolumeRecord): void {
  if (attachment !== null)
    throw badRequest(`Invalid volume: volume ${id} is already attached to instances: ${attachment.serverUuid}`);
}
