/** The orders of a conductor for a guest that exists. */
export const POWER_VERBS = ["start", "stop", "reboot", "hard-reboot", "pause", "unpause", "suspend", "resume"] as const;
export type PowerVerb = (typeof POWER_VERBS)[number];
