import { weighFacts } from "./weigh-facts.ts";
import type { RelativeWeigher } from "./weigher.ts";

/** More servers weigh more: packs by number; with a negative multiplier it spreads (Nova's NumInstancesWeigher). */
export const numInstances: RelativeWeigher = {
  name: "num_instances",
  kind: "relative",
  weigh: (batch, weights, offset) => weighFacts(batch, weights, offset, (host) => host.servers.size),
};
