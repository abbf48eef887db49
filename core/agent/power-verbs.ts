/** The orders of a conductor for a guest that exists. */
export const POWER_VERBS = ["start", "stop", "reboot", "hard-reboot", "pause", "unpause", "suspend", "resume"] as const;
/**
 * The word for a snapshot in the place of a power verb. It travels in the same message, so that an agent of an older version refuses it with a
 * reason.
 */
export const SNAPSHOT_VERB = "snapshot";
export type PowerVerb = (typeof POWER_VERBS)[number];
