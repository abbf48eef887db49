import type { VolumeAttachment, VolumeRecord, VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { notFound } from "../../http/fault.ts";

export type AttachedVolume = VolumeRecord & { readonly attachment: VolumeAttachment };

/** Finds a volume of a server, also while it is attaching or detaching. Refuses one that the server does not have (404). */
export async function findAttachment(
  volumes: Pick<VolumeStore, "volumes"> | null,
  server: { readonly uuid: string; readonly asked: string },
  volumeId: string,
): Promise<AttachedVolume> {
  const volume = await attachmentOfServer(volumes, server.uuid, volumeId);
  if (volume === null)
    throw notFound(`Instance ${server.asked.slice(0, 100)} is not attached to volume ${volumeId.slice(0, 100)}`);
  return volume;
}

/** The volume, if the server has it, will get it or had it last. Null otherwise. */
export async function attachmentOfServer(
  volumes: Pick<VolumeStore, "volumes"> | null,
  serverUuid: string,
  volumeId: string,
): Promise<AttachedVolume | null> {
  for (const volume of (await volumes?.volumes([storedSpelling(volumeId)])) ?? []) {
    const { attachment } = volume;
    if (attachment?.serverUuid === serverUuid) return { ...volume, attachment };
  }
  return null;
}
