import type { ResourceClass, Trait } from "../../ledger/ids.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { Variable } from "./tree-variables.ts";

/** One way to serve all groups, as slots of one view: the slot that each choice took. It is valid until the next candidate is requested. */
export interface FoundCandidate {
  readonly view: LedgerView;
  readonly choices: readonly Variable[];
  /** The chosen slot of each choice. */
  readonly slots: readonly number[];
}

/** Every provider of the trees that contributed to the candidates so far, including providers that contributed nothing themselves. */
export interface FoundProviders {
  readonly view: LedgerView;
  readonly slots: readonly number[];
}

/**
 * Yields candidates as the search finds them, without copying. Copying a thousand of them with their maps would cost more than the search.
 * Slots are valid only while the view does not change, so all of this happens in one turn of the event loop.
 */
export interface FoundCandidates {
  next(): FoundCandidate | null;
  /** Call this after the last candidate. */
  providers(): readonly FoundProviders[];
}

/**
 * The result of a search. Every name in the request must exist: `unknown-traits` lists all unknown traits, `unknown-class` only the first
 * unknown class.
 */
export type CandidateOutcome<Presented> =
  | {
      readonly kind: "found";
      readonly presented: Presented;
      /** True when the search ended at its bound of work, so there may be more candidates than these. */
      readonly boundReached: boolean;
    }
  | { readonly kind: "unknown-class"; readonly resourceClass: ResourceClass }
  | { readonly kind: "unknown-traits"; readonly traits: readonly Trait[] };
