import type { CompiledRequest } from "../../candidates/compiled-request.ts";

/** The hosts of one cell that may serve a request, by the slots of their roots. */
export interface HostBatch {
  readonly cell: string;
  readonly request: CompiledRequest;
  /** The first `count` are valid. */
  readonly roots: Int32Array;
  readonly count: number;
}

/**
 * Says how good hosts are for a request, one aspect a weigher. More is better.
 *
 * `relative` weights are normalised over all hosts as Nova does it: (weight − lowest) ÷ (highest − lowest), where the lowest
 * may be given, so that small differences between well-filled hosts stay small. `absolute` ones are in [−1, 1] and stay as they are.
 */
export interface Weigher {
  readonly name: string;
  readonly scale: { readonly kind: "relative"; readonly lowest?: number } | { readonly kind: "absolute" };
  /**
   * Writes the weight of each host of the batch to `weights` from `offset` on; what it leaves alone is 0. False: it has
   * nothing to say of this request, and wrote nothing. Cost: some nanoseconds a host; no allocation.
   */
  weigh(batch: HostBatch, weights: Float64Array, offset: number): boolean;
}

/** A weigher and how much it counts; negative turns it around, as in Nova. */
export interface WeighedBy {
  readonly weigher: Weigher;
  readonly multiplier: number;
}
