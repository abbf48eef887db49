import { amountOf, weighFree } from "./free-of-class.ts";
import type { RelativeWeigher } from "./weigher.ts";

const CPU_CLASSES: ReadonlySet<string> = new Set(["VCPU", "PCPU", "CUSTOM_CPU_MILLI"]);

/** Prefers hosts with more free CPU, which spreads servers over hosts (Nova's CPUWeigher). */
export const freeCpu: RelativeWeigher = {
  name: "cpu",
  kind: "relative",
  lowest: 0,
  weigh(batch, weights, offset) {
    const requested = amountOf(batch.request, CPU_CLASSES);
    if (requested) weighFree(batch, requested, weights, offset);
    return requested !== undefined;
  },
};
