import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { BoundRequest } from "../../candidates/bound/bound-request.ts";
import type { CellFacts } from "../host-facts.ts";
import type { SpecPart } from "../spec-parts.ts";

/** The hosts of one cell that may serve a request, by the slots of their roots. */
export interface HostBatch {
  readonly cell: string;
  readonly request: BoundRequest;
  /** Facts about the hosts beyond the ledger. Without them, weighers that read facts do not apply. */
  readonly facts?: CellFacts | undefined;
  /** The spec of any of these requests, which are alike in what the weighers read. Null when only the host request is known. */
  readonly spec?: ServerSpec | null;
  /** Roots of the hosts, of which the first `count` entries are valid. */
  readonly roots: Int32Array;
  readonly count: number;
}

/**
 * Rates hosts for a request in one aspect; more is better. Cost: a few nanoseconds a host, and no allocation.
 *
 * - relative: its weights are normalised over all hosts as in Nova, (weight − lowest) ÷ (highest − lowest). The weigher may give the
 *   lowest, so that small differences between well-filled hosts stay small
 * - absolute: its weights are in [−1, 1] and are not normalised
 */
export type Weigher = RelativeWeigher | AbsoluteWeigher;

/** The properties of a weigher that a ranking needs to stay up to date. */
interface KeptWeigher {
  readonly name: string;
  /** The parts of the spec on which its weights depend, besides the host request. */
  readonly reads?: readonly SpecPart[];
  /** Rises when weights may have changed although nothing changed in the hosts' view. */
  readonly version?: number;
}

export interface RelativeWeigher extends KeptWeigher {
  readonly kind: "relative";
  readonly lowest?: number;
  /**
   * Writes the weight of each host to `weights` from `offset` on. Returns false and writes nothing when the weigher does not apply to this
   * request.
   */
  weigh(batch: HostBatch, weights: Float64Array, offset: number): boolean;
}

export interface AbsoluteWeigher extends KeptWeigher {
  readonly kind: "absolute";
  /** Adds the weight of each host times the multiplier to `weights` from `offset` on. */
  addTo(batch: HostBatch, weights: Float64Array, offset: number, multiplier: number): void;
}

/** A weigher and its multiplier. A negative multiplier reverses the preference, as in Nova. */
export interface WeighedBy {
  readonly weigher: Weigher;
  readonly multiplier: number;
  /** Key of aggregate metadata that sets the multiplier for the aggregate's hosts; see host-multiplier.ts. */
  readonly option?: string;
}
