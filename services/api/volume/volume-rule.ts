/** The volumes that servers can have: none, or those of Berth's own Block Storage API. */
export const VOLUME_RULES = ["none", "simple"] as const;
export type VolumeRule = (typeof VOLUME_RULES)[number];
