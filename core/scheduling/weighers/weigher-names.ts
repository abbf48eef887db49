/**
 * The names of all weighers. `<name>_weight_multiplier` is the setting of a weigher's multiplier, and also the key of aggregate metadata
 * that overrides it for the aggregate's hosts, as in Nova.
 */
export const WEIGHER_NAMES = [
  "ram",
  "cpu",
  "disk",
  "io_ops",
  "pci",
  "soft_affinity",
  "soft_anti_affinity",
  "build_failure",
  "cross_cell_move",
  "metrics",
  "num_instances",
  "image_props",
  "hypervisor_version",
  "best_fit",
  "gpu_best_fit",
  "gpu_fragmentation",
  "own_slice",
  "recent_picks",
] as const;

export type WeigherName = (typeof WEIGHER_NAMES)[number];
