import type { HostFilter } from "berth/chaos";

const EXTRA_SPEC = "inlet_celsius_max";
const METRIC = "inlet.celsius";

/**
 * Servers whose flavor has the extra spec `inlet_celsius_max` go only to hosts whose agents report a metric `inlet.celsius` that is not
 * higher. Enable it with `berth scheduler --filters examples/own-filter/cool-hosts.ts`.
 */
const coolHosts: HostFilter = {
  name: "CoolHosts",
  // The verdict depends only on the flavor and the host, so equal requests share it until the host changes.
  decidedBy: "kind",
  reads: ["flavor"],
  bind(spec) {
    const highest = spec.flavor?.extraSpecs[EXTRA_SPEC];
    if (highest === undefined) return null;
    return ({ hypervisor }) => {
      const celsius = hypervisor.metrics[METRIC];
      if (celsius === undefined) return "does not say how warm it is";
      return celsius <= Number(highest) ? null : "is too warm";
    };
  },
};

export default coolHosts;
