import type { HostFilter } from "./filters/host-filter.ts";
import { hostFilters } from "./filters/host-filters.ts";
import type { SchedulingSettings } from "./scheduling-settings.ts";
import type { WeighedBy } from "./weighers/weigher.ts";
import type { WeigherSet } from "./weighers/weigher-set.ts";

/** How hosts are judged and weighed, and which of the best is taken. */
export interface HostRules {
  readonly filters: readonly HostFilter[];
  readonly weighers: readonly WeighedBy[];
  readonly spread: number;
  readonly spreadTolerance: number;
}

/** Hosts of the same weight that one is drawn from. */
const EQUALS_MAX = 64;

/**
 * The rules as operators want them, and the cloud's own filters. Filters and weighers are the same lists for the same settings and own
 * filters.
 */
export function hostRules(
  settings: SchedulingSettings,
  weighers: WeigherSet,
  ownFilters?: readonly HostFilter[],
): HostRules {
  const { hostSubsetSize, hostSubsetTolerance, shuffleBestSameWeighedHosts } = settings;
  const equals = { spread: shuffleBestSameWeighedHosts ? EQUALS_MAX : 1, spreadTolerance: 0 };
  return {
    filters: hostFilters(settings, ownFilters),
    weighers: weighers.of(settings),
    ...(hostSubsetSize === 1 ? equals : { spread: hostSubsetSize, spreadTolerance: hostSubsetTolerance }),
  };
}
