import { weighFacts } from "./weigh-facts.ts";
import type { RelativeWeigher } from "./weigher.ts";

/**
 * Gives more weight to hosts with more servers, which packs servers by number. A negative multiplier spreads them (Nova's
 * NumInstancesWeigher).
 */
export const numInstances: RelativeWeigher = {
  name: "num_instances",
  kind: "relative",
  weigh: (batch, weights, offset) => weighFacts(batch, weights, offset, (host) => host.servers.size),
};
