import type { ResourceClass, Trait } from "../ledger/ids.ts";
import type { LedgerView } from "../ledger/view.ts";
import type { Variable } from "./tree-variables.ts";

/** One way to serve all groups, as slots of one view: what each choice took. Only good until the next is asked for. */
export interface FoundCandidate {
  readonly view: LedgerView;
  readonly choices: readonly Variable[];
  /** By choice. */
  readonly slots: readonly number[];
}

/** Every provider of trees that gave something to the candidates so far, whether or not it gave anything itself. */
export interface FoundProviders {
  readonly view: LedgerView;
  readonly slots: readonly number[];
}

/**
 * Candidates as the search comes upon them, nothing copied: a thousand of them with all their maps would cost more than the
 * search. Slots mean something only while the view stands still, so all of this happens in one turn of the event loop.
 */
export interface FoundCandidates {
  next(): FoundCandidate | null;
  /** To be asked for after the last candidate. */
  providers(): readonly FoundProviders[];
}

/** The names that the query is made of must exist; all the unknown traits are listed, of the classes the first. */
export type CandidateOutcome<Presented> =
  | {
      readonly kind: "found";
      readonly presented: Presented;
      /** The search gave up at its bound on work: there may be more candidates than these. */
      readonly boundReached: boolean;
    }
  | { readonly kind: "unknown-class"; readonly resourceClass: ResourceClass }
  | { readonly kind: "unknown-traits"; readonly traits: readonly Trait[] };
