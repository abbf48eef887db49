import type { SchedulingSettings } from "../scheduling-settings.ts";
import type { HostFilter } from "./host-filter.ts";

/** Passes hosts that report every metric that the metrics weigher uses. */
export function metricsFilter({ metricsWeightSetting }: SchedulingSettings): HostFilter {
  const names = Object.keys(metricsWeightSetting);
  return {
    name: "MetricsFilter",
    decidedBy: "kind",
    reads: [],
    isForAllCells: true,
    bind() {
      if (names.length === 0) return null;
      return ({ hypervisor }) =>
        names.every((name) => Object.hasOwn(hypervisor.metrics, name)) ? null : "does not report a weighed metric";
    },
  };
}
