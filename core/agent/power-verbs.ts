/** The orders of a conductor for a guest that exists. */
export const POWER_VERBS = [
  ...["start", "stop", "reboot", "hard-reboot", "pause", "unpause", "suspend", "resume"],
  ...["unrescue", "inject-nmi"],
] as const;
/**
 * The word for a snapshot in the place of a power verb. It travels in the same message, so that an agent of an older version refuses it with a
 * reason.
 */
export const SNAPSHOT_VERB = "snapshot";
/** The word for a rescue, whose message names the rescue image. */
export const RESCUE_VERB = "rescue";
/** The words for connecting a volume to a guest and for disconnecting it. Their messages name the volume. */
export const ATTACH_VERB = "attach-volume";
export const DETACH_VERB = "detach-volume";
/**
 * The words for the changes of a volume that a guest has. Replacing it by another one: copy it and keep both the same, use the other one from now on, and stay
 * with the first one. And: notice that it has grown. Their messages name the volume.
 */
export const VOLUME_STEP_VERBS = {
  ...{ mirror: "mirror-volume", pivot: "pivot-volume", keep: "keep-volume" },
  extend: "extend-volume",
} as const;
/**
 * The words for the host's part in a snapshot of a volume that its guest uses: write to the new file from now on, go back to the former one, and merge files. Their messages name the
 * volume and the snapshot.
 */
export const SNAPSHOT_STEP_VERBS = { switch: "switch-volume", return: "return-volume", merge: "merge-volume" } as const;
export type SnapshotStep = keyof typeof SNAPSHOT_STEP_VERBS;
export type VolumeStep = keyof typeof VOLUME_STEP_VERBS;
export type PowerVerb = (typeof POWER_VERBS)[number];
