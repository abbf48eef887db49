import type { ServerSpec, ServerVolume } from "../../proto/gen/berth/shared.ts";

/** Whether the server boots from a volume instead of a local disk. */
export function bootsFromVolume({ volumes }: Pick<ServerSpec, "volumes">): boolean {
  return volumes.some(({ isRoot }) => isRoot);
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
