import type { CinderVolume, ReserveVolumeOutcome } from "../../core/stores/block-storage.ts";

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

/** Why Cinder keeps a volume for nobody else. */
export const refusedReserve = ({ id, status }: Pick<CinderVolume, "id" | "status">): ReserveVolumeOutcome => ({
  kind: "refused",
  why: `Invalid volume: Volume ${id} status must be available or downloading to reserve, but the current status is ${status}.`,
});
