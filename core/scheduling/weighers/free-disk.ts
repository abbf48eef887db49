import { amountOf, weighFree } from "./free-of-class.ts";
import type { RelativeWeigher } from "./weigher.ts";

const DISK_CLASSES: ReadonlySet<string> = new Set(["DISK_GB"]);

/** Prefers hosts with more free disk (Nova's DiskWeigher). */
export const freeDisk: RelativeWeigher = {
  name: "disk",
  kind: "relative",
  lowest: 0,
  weigh(batch, weights, offset) {
    const requested = amountOf(batch.request, DISK_CLASSES);
    if (requested) weighFree(batch, requested, weights, offset);
    return requested !== undefined;
  },
};
