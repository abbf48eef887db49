import type { HostFilter } from "./filters/host-filter.ts";
import { hostFilters } from "./filters/host-filters.ts";
import type { SchedulingSettings } from "./scheduling-settings.ts";
import type { WeighedBy } from "./weighers/weigher.ts";
import type { WeigherSet } from "./weighers/weigher-set.ts";

/** How hosts are filtered and weighed, and from how many of the best the host is drawn. */
export interface HostRules {
  readonly filters: readonly HostFilter[];
  readonly weighers: readonly WeighedBy[];
  readonly spread: number;
  readonly spreadTolerance: number;
}

/** Number of hosts of equal weight from which one is drawn. */
const EQUALS_MAX = 64;

/**
 * Builds the rules from the operators' settings and the cloud's own filters. The same settings and own filters give the same list objects.
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
