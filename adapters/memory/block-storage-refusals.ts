import type {
  CinderVolume,
  MakeVolumeOutcome,
  NewCinderVolume,
  ReimageOutcome,
  ReserveVolumeOutcome,
} from "../../core/stores/block-storage.ts";

/** Cinder deletes no volume that a server has. */
export const IN_USE = {
  kind: "refused",
  why: "Invalid volume: Volume status must be available or error and must not be attached.",
} as const;
/** The driver cannot export the volume. */
export const BROKEN = {
  kind: "refused",
  why: "Unable to update attachment: the driver cannot export the volume",
} as const;

export const NO_VOLUME = { kind: "refused", why: "Volume could not be found." } as const;

/** Why Cinder makes no volume for a project that has so many, or null if it does. */
export function refusedVolume(
  { sizeGib, volumeType }: Pick<NewCinderVolume, "sizeGib" | "volumeType">,
  { owned, max, types }: { readonly owned: number; readonly max: number; readonly types: ReadonlySet<string> },
): Exclude<MakeVolumeOutcome, { kind: "created" }> | null {
  if (owned >= max)
    return {
      kind: "over-quota",
      why: `VolumeLimitExceeded: Maximum number of volumes allowed (${max}) exceeded for quota 'volumes'.`,
    };
  if (sizeGib === 0) return { kind: "refused", why: "Invalid input for field/attribute size. Value: 0." };
  if (volumeType === null || types.has(volumeType)) return null;
  return { kind: "refused", why: `Volume type with name ${volumeType} could not be found.` };
}

/** Why Cinder keeps a volume for nobody else. */
export const refusedReserve = ({ id, status }: Pick<CinderVolume, "id" | "status">): ReserveVolumeOutcome => ({
  kind: "refused",
  why: `Invalid volume: Volume ${id} status must be available or downloading to reserve, but the current status is ${status}.`,
});

/** Why Cinder neither makes nor changes an attachment of a volume in this status, or null if it does. Source: `attachment_create` and `attachment_update` of Cinder's volume API. */
export const refusedBroken = ({ id, status }: Pick<CinderVolume, "id" | "status">) =>
  status === "error"
    ? ({
        kind: "refused",
        why: `Invalid volume: Volume attachments can not be created if the volume is in an error state. The Volume ${id} currently has a status of: ${status}`,
      } as const)
    : null;

/** Why Cinder does not fill a volume with an image, or null if it does. Source: `reimage` of Cinder's volume API. */
export function refusedReimage(
  { id, status }: Pick<CinderVolume, "id" | "status">,
  attachments: number,
): ReimageOutcome | null {
  const refused = (why: string) => ({ kind: "refused", why }) as const;
  if (attachments > 1) return refused("Cannot re-image a volume which is attached to more than one server.");
  if (["available", "error", "reserved"].includes(status)) return null;
  return refused(
    `Invalid volume: Volume ${id} status must be available or error or reserved, but current status is ${status}.`,
  );
}
