import type { AggregateUuid, ProviderUuid, ResourceClass, Trait } from "../ledger/ids.ts";

/** Rules of a `required` parameter: the outer list means AND, an inner list means OR. */
export interface TraitRules {
  readonly required: readonly (readonly Trait[])[];
  readonly forbidden: readonly Trait[];
}
/** Rules of a `member_of` parameter: the outer list means AND, an inner list means OR. */
export interface AggregateRules {
  readonly memberOf: readonly (readonly AggregateUuid[])[];
  readonly forbidden: readonly AggregateUuid[];
}

/** One group of a request for candidates. The group with suffix "" may take its classes from several providers of a tree. */
export interface QueryGroup {
  readonly suffix: string;
  readonly resources: ReadonlyMap<ResourceClass, number>;
  readonly required: readonly (readonly Trait[])[];
  readonly forbidden: readonly Trait[];
  readonly memberOf: readonly (readonly AggregateUuid[])[];
  readonly forbiddenAggregates: readonly AggregateUuid[];
  readonly inTree: ProviderUuid | undefined;
}

/** The parameters of the Placement API's GET /allocation_candidates, parsed and checked. */
export interface CandidateQuery {
  readonly groups: readonly QueryGroup[];
  readonly groupPolicy: "none" | "isolate" | undefined;
  readonly limit: number | undefined;
  /** Traits that the root of a candidate's tree must and must not have (1.35). */
  readonly rootTraits: TraitRules;
  /** Lists of suffixes. The providers of a list's groups must all be at or below one of these providers (1.36). */
  readonly sameSubtrees: readonly (readonly string[])[];
  /** False before 1.29: a candidate then takes its resources from one provider of a tree, besides sharing providers. */
  readonly nested: boolean;
}
