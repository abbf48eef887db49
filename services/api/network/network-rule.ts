/** The networks that servers can be connected to: none, one of Berth's own that all projects share, or those of Neutron. */
export const NETWORK_RULES = ["none", "simple", "neutron"] as const;
/** Those that need no other service. */
export const OWN_NETWORK_RULES = ["none", "simple"] as const;
export type NetworkRule = (typeof NETWORK_RULES)[number];
