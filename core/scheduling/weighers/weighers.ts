import { bestFit } from "./best-fit.ts";
import { freeCpu } from "./free-cpu.ts";
import { freeDisk } from "./free-disk.ts";
import { freeMemory } from "./free-memory.ts";
import { gpuBestFit } from "./gpu-best-fit.ts";
import { hypervisorVersion } from "./hypervisor-version.ts";
import { imageProps } from "./image-props.ts";
import { ioOps } from "./io-ops.ts";
import { metrics } from "./metrics.ts";
import { numInstances } from "./num-instances.ts";
import { pci } from "./pci.ts";
import { softAffinity, softAntiAffinity } from "./soft-affinity.ts";
import type { Weigher } from "./weigher.ts";
import type { WeigherSettings } from "./weigher-settings.ts";

/** Weighers that use more than views, facts and settings. Each scheduler makes its own. */
export interface OwnWeighers {
  readonly buildFailure: Weigher;
  readonly ownSlice: Weigher;
  readonly recentPicks: Weigher;
  readonly gpuFragmentation: Weigher;
}

interface WeigherEntry {
  /** The multiplier unless operators set another one: Nova's default where Nova has the weigher. */
  readonly multiplier: number;
  readonly make: ((settings: WeigherSettings, own: OwnWeighers) => Weigher) | null;
}

/**
 * All weighers by name. `<name>_weight_multiplier` is the setting of a weigher's multiplier, and also the key of aggregate metadata that
 * overrides it for the aggregate's hosts, as in Nova.
 */
export const WEIGHERS = {
  ram: { multiplier: 1, make: () => freeMemory },
  cpu: { multiplier: 1, make: () => freeCpu },
  disk: { multiplier: 1, make: () => freeDisk },
  io_ops: { multiplier: -1, make: () => ioOps },
  pci: { multiplier: 1, make: pci },
  soft_affinity: { multiplier: 1, make: () => softAffinity },
  soft_anti_affinity: { multiplier: 1, make: () => softAntiAffinity },
  build_failure: { multiplier: 8, make: (_, own) => own.buildFailure },
  // Made for each move, with the cell that the server is in.
  cross_cell_move: { multiplier: 1_000_000, make: null },
  metrics: { multiplier: 1, make: metrics },
  num_instances: { multiplier: 0, make: () => numInstances },
  image_props: { multiplier: 0, make: imageProps },
  hypervisor_version: { multiplier: 1, make: () => hypervisorVersion },
  best_fit: { multiplier: 0, make: bestFit },
  gpu_best_fit: { multiplier: 5, make: () => gpuBestFit },
  gpu_fragmentation: { multiplier: 0, make: (_, own) => own.gpuFragmentation },
  own_slice: { multiplier: 2, make: (_, own) => own.ownSlice },
  // A pick is only a hint, so it counts less than any difference in free room that matters.
  recent_picks: { multiplier: 0.25, make: (_, own) => own.recentPicks },
} as const satisfies Readonly<Record<string, WeigherEntry>>;

export type WeigherName = keyof typeof WEIGHERS;

export const WEIGHER_NAMES = Object.keys(WEIGHERS) as readonly WeigherName[];

export const DEFAULT_MULTIPLIERS = Object.fromEntries(
  WEIGHER_NAMES.map((name) => [name, WEIGHERS[name].multiplier]),
) as Readonly<Record<WeigherName, number>>;
