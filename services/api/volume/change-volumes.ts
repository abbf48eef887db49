import { randomUUID } from "node:crypto";
import type {
  NewAttachment,
  VolumeChanges,
  VolumeRecord,
  VolumeStore,
  VolumeUsage,
} from "../../../core/stores/api/volume-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { KnownCall } from "../http/call.ts";
import { storedSpelling } from "../http/canonical-uuid.ts";
import { badRequest, Fault, notFound } from "../http/fault.ts";
import type { CreateVolumeBody } from "./volume-schemas.ts";
import { isVolumeType } from "./volume-type.ts";
import { statusOf } from "./volume-view.ts";

export interface VolumeDeps {
  readonly store: VolumeStore;
  readonly clock: Pick<Clock, "now">;
  /** What a project may have at most. */
  readonly limits: VolumeUsage;
}

/** The zone of all volumes, which hosts of every zone reach. */
export const VOLUME_ZONE = "nova";
const ITEMS_MAX = 128;
/** Fields that name what a new volume is filled from. */
const SOURCES = ["imageRef", "snapshot_id", "source_volid", "backup_id", "consistencygroup_id"] as const;

/**
 * Refuses contents from elsewhere, an unknown type or zone (400), and more than the project may have (413). With `attachment`, the volume is made for that
 * server.
 */
export async function createVolume(
  deps: VolumeDeps,
  { identity }: Pick<KnownCall, "identity">,
  { volume }: CreateVolumeBody,
  attachment?: NewAttachment,
): Promise<VolumeRecord> {
  const source = SOURCES.find((field) => volume[field] != null);
  if (source !== undefined)
    throw badRequest(
      `Invalid input for field/attribute ${source}. Berth makes empty volumes only: leave ${source} out, and write the volume in a server.`,
    );
  const { volume_type, availability_zone } = volume;
  if (volume_type != null && !isVolumeType(volume_type))
    throw notFound(`Volume type with name ${volume_type.slice(0, 100)} could not be found.`);
  if (availability_zone != null && availability_zone !== VOLUME_ZONE)
    throw badRequest(`Availability zone '${availability_zone.slice(0, 100)}' is invalid.`);
  const record = {
    id: randomUUID(),
    ...{ projectId: identity.projectId, userId: identity.userId },
    ...{
      name: volume.name ?? volume.display_name ?? "",
      description: volume.description ?? volume.display_description ?? null,
      sizeGib: Number(volume.size),
    },
    ...{ metadata: volume.metadata ?? {}, availabilityZone: VOLUME_ZONE, isBootable: false, inCinder: false },
    making: attachment === undefined ? null : ("made" as const),
    createdAtMs: deps.clock.now(),
  };
  const outcome = await deps.store.createVolume(record, deps.limits, attachment);
  if (outcome.kind === "over-limit") throw overLimit(deps.limits, outcome, record.sizeGib);
  return { ...record, updatedAtMs: null, attachment: null };
}

/** Source: the messages of `VolumeLimitExceeded` and `VolumeSizeExceedsAvailableQuota` in Cinder. */
function overLimit(
  limits: VolumeUsage,
  { limit, used }: { readonly limit: keyof VolumeUsage; readonly used: number },
  sizeGib: number,
): Fault {
  if (limit === "volumes")
    return new Fault(
      413,
      `VolumeLimitExceeded: Maximum number of volumes allowed (${limits.volumes}) exceeded for quota 'volumes'. Delete volumes that are not needed, or ask an operator to raise BERTH_VOLUMES_PER_PROJECT_MAX.`,
    );
  return new Fault(
    413,
    `VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested ${sizeGib}G, quota is ${limits.gib}G and ${used}G has been consumed. Delete volumes that are not needed, or ask an operator to raise BERTH_VOLUME_GIB_PER_PROJECT_MAX.`,
  );
}

/** Finds a volume of the caller's project, or for admins of any. */
export async function findVolume(
  store: Pick<VolumeStore, "volumes">,
  { identity }: KnownCall,
  id: string,
): Promise<VolumeRecord> {
  const [volume] = await store.volumes([storedSpelling(id)]);
  if (volume === undefined || !(identity.isAdmin || volume.projectId === identity.projectId)) throw volumeNotFound(id);
  return volume;
}

export const volumeNotFound = (id: string): Fault => notFound(`Volume ${id.slice(0, 100)} could not be found.`);

/** Changes a volume that the caller may see. Refuses more metadata than a volume may have (400). */
export async function changeVolume(
  { store, clock }: VolumeDeps,
  call: KnownCall,
  id: string,
  change: (volume: VolumeRecord) => VolumeChanges,
): Promise<VolumeRecord> {
  const { id: stored } = await findVolume(store, call, id);
  const checked = (volume: VolumeRecord) => {
    const changes = change(volume);
    if (Object.keys(changes.metadata ?? {}).length > ITEMS_MAX)
      throw badRequest(`A volume has at most ${ITEMS_MAX} items of metadata.`);
    return changes;
  };
  const changed = await store.updateVolume(stored, checked, clock.now());
  if (changed === null) throw volumeNotFound(id);
  return changed;
}

/** Refuses a volume that a server has, will get, or may still have (400, as in Cinder). */
export async function deleteVolume({ store }: VolumeDeps, call: KnownCall, id: string): Promise<void> {
  const volume = await findVolume(store, call, id);
  if ((await store.deleteVolume(volume.id)) !== "taken") return;
  const now = await findVolume(store, call, id);
  const holder = now.attachment?.serverUuid;
  throw badRequest(
    `Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer. Its status is ${statusOf(now)}${holder === undefined ? "" : `, with server ${holder}: detach it first, or wait until that is done`}.`,
  );
}
