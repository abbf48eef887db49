import { demandOf, weighFree } from "./free-of-class.ts";
import type { RelativeWeigher } from "./weigher.ts";

const MEMORY_CLASSES: ReadonlySet<string> = new Set(["MEMORY_MB"]);

/** Prefers hosts with more free memory (Nova's RAMWeigher). */
export const freeMemory: RelativeWeigher = {
  name: "ram",
  kind: "relative",
  lowest: 0,
  weigh(batch, weights, offset) {
    const demand = demandOf(batch.request, MEMORY_CLASSES);
    if (demand) weighFree(batch, demand, weights, offset);
    return demand !== undefined;
  },
};
