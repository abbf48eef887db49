import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { CompiledRequest } from "../../candidates/compiled-request.ts";
import type { CellFacts } from "../host-facts.ts";
import type { SpecPart } from "../ranking/spec-parts.ts";

/** The hosts of one cell that may serve a request, by the slots of their roots. */
export interface HostBatch {
  readonly cell: string;
  readonly request: CompiledRequest;
  /** What is known of the hosts beside the ledger; without it, weighers that look there have nothing to say. */
  readonly facts?: CellFacts | undefined;
  /** Any request of those that are weighed for, alike in what the weighers read; null: nothing but the query is known. */
  readonly spec?: ServerSpec | null;
  /** The first `count` are valid. */
  readonly roots: Int32Array;
  readonly count: number;
}

/**
 * Says how good hosts are for a request, one aspect a weigher; more is better. Cost: some nanoseconds a host; no allocation.
 *
 * - relative: its weights are normalised over all hosts as Nova does it: (weight − lowest) ÷ (highest − lowest), where the
 *   lowest may be given, so that small differences between well-filled hosts stay small
 * - absolute: its weights are in [−1, 1] and stay as they are
 */
export type Weigher = RelativeWeigher | AbsoluteWeigher;

/** What a ranking that is kept up to date has to know of a weigher. */
interface KeptWeigher {
  readonly name: string;
  /** What its weights depend on of the request beside what it asks of the ledger. */
  readonly reads?: readonly SpecPart[];
  /** Rises when hosts may weigh differently although nothing changed in their view. */
  readonly version?: number;
}

export interface RelativeWeigher extends KeptWeigher {
  readonly kind: "relative";
  readonly lowest?: number;
  /** Writes the weight of each host to `weights` from `offset` on. False: it has nothing to say of this request, and wrote nothing. */
  weigh(batch: HostBatch, weights: Float64Array, offset: number): boolean;
}

export interface AbsoluteWeigher extends KeptWeigher {
  readonly kind: "absolute";
  /** Adds the weight of each host times the multiplier to `weights` from `offset` on. */
  addTo(batch: HostBatch, weights: Float64Array, offset: number, multiplier: number): void;
}

/** A weigher and how much it counts; negative turns it around, as in Nova. */
export interface WeighedBy {
  readonly weigher: Weigher;
  readonly multiplier: number;
  /** Key of aggregate metadata that sets the multiplier for the aggregate's hosts; see host-multiplier.ts. */
  readonly option?: string;
}
