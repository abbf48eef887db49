import type { ServerSpec, ServerVolume, VolumeFile } from "../../proto/gen/berth/shared.ts";

/** Whether the server boots from a volume instead of a local disk. */
export function bootsFromVolume({ volumes }: Pick<ServerSpec, "volumes">): boolean {
  return volumes.some(({ isRoot }) => isRoot);
}

/**
 * A volume of which nobody but the guest's host knows whether the guest uses it or the one that was to replace it; undefined if there is none.
 * While a replacement is under way, this is true of its volume, too.
 */
export function volumeInDoubt({ volumes }: Pick<ServerSpec, "volumes">): ServerVolume | undefined {
  return volumes.find(({ replacedBy }) => replacedBy !== "");
}

/** The volumes after one of them was attached, or else detached. The result is the same when it was among them, or not, before. */
export function volumesAfter(
  volumes: readonly ServerVolume[],
  isAttached: boolean,
  volume: ServerVolume,
): ServerVolume[] {
  const others = volumes.filter(({ volumeId }) => volumeId !== volume.volumeId);
  return isAttached ? [...others, volume] : others;
}

/** The id under which Cinder knows the volume that the guest uses. */
export const idInCinder = ({ volumeId, replacedBy }: Pick<ServerVolume, "volumeId" | "replacedBy">): string =>
  replacedBy || volumeId;

/** The volume when Cinder has finished its replacement, or has called it off. */
export const withoutReplacement = (volume: ServerVolume): ServerVolume =>
  volume.replacedBy === "" ? volume : { ...volume, replacedBy: "" };

/** The volume without the way in which a host reaches it, which is the affair of that host's driver alone, and may hold secrets. */
export const withoutConnection = (volume: ServerVolume): ServerVolume => ({ ...volume, connection: "" });

/** The volumes, of which these have other files. */
export function volumesWithFiles(volumes: readonly ServerVolume[], files: readonly VolumeFile[]): ServerVolume[] {
  const named = new Map(files.map(({ volumeId, file }) => [volumeId, file]));
  return volumes.map((volume) => ({ ...volume, file: named.get(volume.volumeId) ?? volume.file }));
}

/** The files that a guest of the server must use, of those volumes of which snapshots were made while a guest used them. */
export const filesOf = ({ volumes }: { readonly volumes: readonly ServerVolume[] }): VolumeFile[] =>
  volumes.filter(({ file }) => file !== "").map(({ volumeId, file }) => ({ volumeId, file }));
