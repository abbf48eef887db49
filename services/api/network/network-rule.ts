/** The networks that servers can be connected to: none, or one of Berth's own that all projects share. */
export const NETWORK_RULES = ["none", "simple"] as const;
export type NetworkRule = (typeof NETWORK_RULES)[number];
