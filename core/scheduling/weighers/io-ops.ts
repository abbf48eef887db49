import { weighFacts } from "./weigh-facts.ts";
import type { RelativeWeigher } from "./weigher.ts";

/**
 * Gives more weight to hosts with more servers being built, moved or copied. Its multiplier is negative, so that quiet hosts win (Nova's
 * IoOpsWeigher).
 */
export const ioOps: RelativeWeigher = {
  name: "io_ops",
  kind: "relative",
  lowest: 0,
  weigh: (batch, weights, offset) => weighFacts(batch, weights, offset, (host) => host.ioOps),
};
