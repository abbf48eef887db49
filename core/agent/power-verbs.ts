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
export type PowerVerb = (typeof POWER_VERBS)[number];
