import { weighFacts } from "./weigh-facts.ts";
import type { RelativeWeigher } from "./weigher.ts";

/** Prefers newer hypervisors (Nova's HypervisorVersionWeigher). */
export const hypervisorVersion: RelativeWeigher = {
  name: "hypervisor_version",
  kind: "relative",
  weigh: (batch, weights, offset) => weighFacts(batch, weights, offset, (host) => host.hypervisor.version),
};
