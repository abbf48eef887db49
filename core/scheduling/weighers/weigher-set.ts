import { multiplierOption, type SchedulingSettings } from "../scheduling-settings.ts";
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
import type { WeighedBy, Weigher } from "./weigher.ts";
import type { WeigherName } from "./weigher-names.ts";

/** Weighers that use more than views, facts and settings. Each scheduler makes its own. */
export interface OwnWeighers {
  readonly buildFailure: Weigher;
  readonly ownSlice: Weigher;
  readonly recentPicks: Weigher;
  readonly gpuFragmentation: Weigher;
}

type Made = Exclude<WeigherName, "cross_cell_move">;

/** All weighers, made from the settings. The same settings give the same list object. For moves, see cross-cell-move.ts. */
export class WeigherSet {
  readonly #own: OwnWeighers;
  readonly #made = new WeakMap<SchedulingSettings, readonly WeighedBy[]>();

  constructor(own: OwnWeighers) {
    this.#own = own;
  }

  of(settings: SchedulingSettings): readonly WeighedBy[] {
    const known = this.#made.get(settings);
    if (known) return known;
    const weighers = Object.entries(this.#weighers(settings)).map(([key, weigher]) => {
      const name = key as Made;
      return { weigher, multiplier: settings.multipliers[name], option: multiplierOption(name) };
    });
    this.#made.set(settings, weighers);
    return weighers;
  }

  #weighers(settings: SchedulingSettings): Readonly<Record<Made, Weigher>> {
    return {
      ram: freeMemory,
      cpu: freeCpu,
      disk: freeDisk,
      io_ops: ioOps,
      pci: pci(settings),
      soft_affinity: softAffinity,
      soft_anti_affinity: softAntiAffinity,
      build_failure: this.#own.buildFailure,
      metrics: metrics(settings),
      num_instances: numInstances,
      image_props: imageProps(settings),
      hypervisor_version: hypervisorVersion,
      best_fit: bestFit(settings),
      gpu_best_fit: gpuBestFit,
      gpu_fragmentation: this.#own.gpuFragmentation,
      own_slice: this.#own.ownSlice,
      recent_picks: this.#own.recentPicks,
    };
  }
}
