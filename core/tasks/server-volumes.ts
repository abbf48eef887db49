import type { ServerSpec, ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { OperationKind } from "./operation-kinds.ts";

/**
 * The server's spec after its volume was attached or detached. The result is the same when the spec has, or lacks, the volume already. Other kinds of
 * operations leave the volumes as they are.
 */
export function withVolumeChanged(spec: ServerSpec, kind: OperationKind, volume: ServerVolume | undefined): ServerSpec {
  if (volume === undefined || !(kind === "attach-volume" || kind === "detach-volume")) return spec;
  return { ...spec, volumes: volumesAfter(spec.volumes, kind === "attach-volume", volume) };
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
