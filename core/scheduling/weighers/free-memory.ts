import { amountOf, weighFree } from "./free-of-class.ts";
import type { RelativeWeigher } from "./weigher.ts";

const MEMORY_CLASSES: ReadonlySet<string> = new Set(["MEMORY_MB"]);

/** Prefers hosts with more free memory (Nova's RAMWeigher). */
export const freeMemory: RelativeWeigher = {
  name: "ram",
  kind: "relative",
  lowest: 0,
  weigh(batch, weights, offset) {
    const requested = amountOf(batch.request, MEMORY_CLASSES);
    if (requested) weighFree(batch, requested, weights, offset);
    return requested !== undefined;
  },
};
