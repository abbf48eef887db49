/**
 * The weighers there are. The setting of each one's multiplier, and the key of an aggregate's metadata that overrides it for the
 * aggregate's hosts, is `<name>_weight_multiplier`, as Nova calls it.
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
