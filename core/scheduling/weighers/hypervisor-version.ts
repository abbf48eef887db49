import { weighFacts } from "./weigh-facts.ts";
import type { RelativeWeigher } from "./weigher.ts";

/** Prefers newer hypervisors (Nova's HypervisorVersionWeigher). */
export const hypervisorVersion: RelativeWeigher = {
  name: "hypervisor_version",
  kind: "relative",
  weigh(batch, weights, offset) {
    const common = batch.facts?.commonHypervisorVersion ?? null;
    if (common === null) return weighFacts(batch, weights, offset, ({ hypervisor }) => hypervisor.version);
    weights.fill(common, offset, offset + batch.count);
    return true;
  },
};
