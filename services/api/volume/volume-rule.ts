/** The volumes that servers can have: none, those of Berth's own Block Storage API, or those of Cinder. */
export const VOLUME_RULES = ["none", "simple", "cinder"] as const;
/** Those that need no other service. */
export const OWN_VOLUME_RULES = ["none", "simple"] as const;
export type VolumeRule = (typeof VOLUME_RULES)[number];
