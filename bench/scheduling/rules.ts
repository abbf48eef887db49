import type { HostFilter } from "../../core/scheduling/filters/host-filter.ts";
import { hostFilters } from "../../core/scheduling/filters/host-filters.ts";
import { DEFAULT_SCHEDULING_SETTINGS, type SchedulingSettings } from "../../core/scheduling/scheduling-settings.ts";
import { buildFailures } from "../../core/scheduling/weighers/build-failures.ts";
import { GpuFragmentation } from "../../core/scheduling/weighers/gpu-fragmentation.ts";
import { OwnSlice } from "../../core/scheduling/weighers/own-slice.ts";
import { RecentPicks } from "../../core/scheduling/weighers/recent-picks.ts";
import type { WeighedBy } from "../../core/scheduling/weighers/weigher.ts";
import { WeigherSet } from "../../core/scheduling/weighers/weigher-set.ts";

/** The filters and weighers of one scheduler. */
export interface Rules {
  readonly filters: readonly HostFilter[];
  readonly weighers: readonly WeighedBy[];
  readonly slice: OwnSlice;
}

/** The ten filters that are enabled by default, and all weighers. */
export function allRules(scheduler: string, over: Partial<SchedulingSettings["multipliers"]> = {}): Rules {
  const multipliers = {
    ...DEFAULT_SCHEDULING_SETTINGS.multipliers,
    ...{ num_instances: -0.1, image_props: 0.1, best_fit: 0.1, gpu_fragmentation: 1 },
    ...over,
  };
  const settings: SchedulingSettings = { ...DEFAULT_SCHEDULING_SETTINGS, multipliers };
  const slice = new OwnSlice(scheduler);
  const failures = new Map([["host-7", 2]]);
  const own = {
    buildFailure: buildFailures(() => failures),
    ownSlice: slice,
    recentPicks: new RecentPicks(),
    gpuFragmentation: new GpuFragmentation(),
  };
  const weighers = new WeigherSet(own).of(settings);
  return { filters: hostFilters(settings), weighers, slice };
}
