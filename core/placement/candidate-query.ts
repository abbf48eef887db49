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
