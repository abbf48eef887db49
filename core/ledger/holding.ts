import type { AllocationItem } from "./model.ts";

/** The allocations that a consumer holds now. */
export interface Holding {
  readonly generation: number;
  readonly items: readonly AllocationItem[];
}
