import type { AggregateUuid, ProviderUuid, ResourceClass, Trait } from "../ledger/ids.ts";

/** Rules of a `required` parameter: outer list AND, inner list OR. */
export interface TraitRules {
  readonly required: readonly (readonly Trait[])[];
  readonly forbidden: readonly Trait[];
}
/** Rules of a `member_of` parameter: outer list AND, inner list OR. */
export interface AggregateRules {
  readonly memberOf: readonly (readonly AggregateUuid[])[];
  readonly forbidden: readonly AggregateUuid[];
}

/** One group of a request for candidates. Suffix "" is the group whose classes may come from several providers of a tree. */
export interface QueryGroup {
  readonly suffix: string;
  readonly resources: ReadonlyMap<ResourceClass, number>;
  readonly required: readonly (readonly Trait[])[];
  readonly forbidden: readonly Trait[];
  readonly memberOf: readonly (readonly AggregateUuid[])[];
  readonly forbiddenAggregates: readonly AggregateUuid[];
  readonly inTree: ProviderUuid | undefined;
}

/** GET /allocation_candidates of the Placement API, read and checked. */
export interface CandidateQuery {
  readonly groups: readonly QueryGroup[];
  readonly groupPolicy: "none" | "isolate" | undefined;
  readonly limit: number | undefined;
  /** What the root of a candidate's tree must and must not have (1.35). */
  readonly rootTraits: TraitRules;
  /** Suffixes whose providers must all lie at or below one provider that serves one of them (1.36). */
  readonly sameSubtrees: readonly (readonly string[])[];
  /** False before 1.29: only candidates whose resources come from one provider of a tree (and sharing ones). */
  readonly nested: boolean;
}

/** One way to serve all groups. */
export interface Candidate {
  readonly resources: ReadonlyMap<ProviderUuid, ReadonlyMap<ResourceClass, number>>;
  /** Which providers serve which group. */
  readonly mappings: ReadonlyMap<string, readonly ProviderUuid[]>;
}

/** A provider of a tree that some candidate is of, whether or not it gives anything. */
export interface ProviderSummary {
  readonly uuid: ProviderUuid;
  readonly parent: ProviderUuid | null;
  readonly root: ProviderUuid;
  readonly traits: readonly Trait[];
  readonly resources: ReadonlyMap<ResourceClass, { readonly capacity: number; readonly used: number }>;
}

export interface CandidateAnswer {
  readonly candidates: readonly Candidate[];
  readonly summaries: readonly ProviderSummary[];
  /** The search gave up at its bound on work: there may be more candidates than these. */
  readonly boundReached: boolean;
}

/** The names that the query is made of must exist; all the unknown traits are listed, of the classes the first. */
export type CandidateOutcome =
  | ({ readonly kind: "found" } & CandidateAnswer)
  | { readonly kind: "unknown-class"; readonly resourceClass: ResourceClass }
  | { readonly kind: "unknown-traits"; readonly traits: readonly Trait[] };

/** Where candidates come from: the ledger views of the cells. */
export interface CandidateSource {
  /**
   * Strict: the answer is of a state that shows every write acknowledged before the call; with `staleMs` at least every
   * one acknowledged so many milliseconds before it.
   */
  candidates(query: CandidateQuery, staleMs: number): Promise<CandidateOutcome>;
}
