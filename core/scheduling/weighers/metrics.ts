import { weighFacts } from "./weigh-facts.ts";
import type { RelativeWeigher } from "./weigher.ts";
import type { WeigherSettings } from "./weigher-settings.ts";

/**
 * Weighs the metrics that hosts report, each with its ratio (Nova's MetricsWeigher). A host without one of them weighs
 * `metricsWeightOfUnavailable`. When metrics are required, such a host has been filtered out before (see hostFilters).
 */
export function metrics({ metricsWeightSetting, metricsWeightOfUnavailable }: WeigherSettings): RelativeWeigher {
  const ratios = Object.entries(metricsWeightSetting).filter(([, ratio]) => ratio !== 0);
  return {
    name: "metrics",
    kind: "relative",
    weigh(batch, weights, offset) {
      if (ratios.length === 0) return false;
      return weighFacts(batch, weights, offset, ({ hypervisor }) => {
        let sum = 0;
        for (const [name, ratio] of ratios) {
          const value = Object.hasOwn(hypervisor.metrics, name) ? hypervisor.metrics[name] : undefined;
          if (value === undefined) return metricsWeightOfUnavailable;
          sum += value * ratio;
        }
        return sum;
      });
    },
  };
}
