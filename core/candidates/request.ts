import type { AggregateUuid, ProviderUuid, ResourceClass, Trait } from "../ledger/ids.ts";

/**
 * A request to one provider (a numbered group) or to one tree (the unnumbered group, with suffix ""). It is the Placement API's
 * request group: `resources`, `required`, `member_of`, `in_tree` with their suffix.
 */
export interface RequestGroup {
  /** "" for the unnumbered group, of which there is at most one; otherwise `1`, `_NIC`, … */
  readonly suffix: string;
  /** Amounts of at least 1. Only a numbered group may be without resources: it then names a provider by its traits, for `sameSubtree`. */
  readonly resources: ReadonlyMap<ResourceClass, number>;
  /** Traits that the provider of a numbered group must have, or that the providers of the unnumbered group must have together. */
  readonly requiredTraits: ReadonlySet<Trait>;
  /** At least one trait of each set is required (`in:` in the Placement API). */
  readonly requiredAny: readonly ReadonlySet<Trait>[];
  /** Traits that no provider of the group may have. */
  readonly forbiddenTraits: ReadonlySet<Trait>;
  /** The provider must be a member of at least one aggregate of each set. For the unnumbered group, membership of its root counts too. */
  readonly memberOf: readonly ReadonlySet<AggregateUuid>[];
  /** The provider, and for the unnumbered group its root too, must not be a member of any of these aggregates. */
  readonly forbiddenAggregates: ReadonlySet<AggregateUuid>;
  /** Classes of the unnumbered group that one provider must serve together. Absent when each class may have a provider of its own. */
  readonly oneProvider?: readonly ResourceClass[];
  /** Restricts the group to the tree of this provider; null permits any tree. */
  readonly inTree: ProviderUuid | null;
}

/** `none` lets several numbered groups share a provider. `isolate` gives each of them a different one. */
export type GroupPolicy = "none" | "isolate";

/** Selects the trees to search, before any limit applies. */
export interface TreeFilter {
  /** Admits only trees of hosts that are up and not disabled. */
  readonly openHostsOnly: boolean;
  readonly excludedHosts: ReadonlySet<string>;
  /** Admits only the trees of these hosts. Without it the tree of any host is admitted. */
  readonly onlyHosts?: ReadonlySet<string>;
}

/** Traits that the root of a tree must and must not have, whichever providers serve the groups. */
export interface RootTraits {
  readonly requiredTraits: ReadonlySet<Trait>;
  readonly forbiddenTraits: ReadonlySet<Trait>;
}

/** Conditions on the root of a tree, whichever providers serve the groups. */
export interface RootRules extends RootTraits {
  /** The root must be a member of at least one aggregate of each set. */
  readonly memberOf: readonly ReadonlySet<AggregateUuid>[];
  readonly forbiddenAggregates: ReadonlySet<AggregateUuid>;
}

/** Rules between numbered groups, which are named by their suffixes. */
export interface GroupRules {
  /** Among the providers that serve a list's groups, one must be at or above all the others (the Placement API's `same_subtree`). */
  readonly sameSubtree?: readonly (readonly string[])[];
  /**
   * The groups of a list must be served by different providers. Only the root may serve several, since a flat host has no other provider.
   */
  readonly apart?: readonly (readonly string[])[];
}

/** The groups that a candidate must serve: both searches read them. */
export interface GroupsRequest {
  readonly groups: readonly RequestGroup[];
  readonly groupPolicy: GroupPolicy;
}

/** What schedulers ask for: the best candidates, with one answer for interchangeable children. */
export interface CandidateRequest extends GroupsRequest, GroupRules {
  readonly rootRules?: RootRules;
  readonly trees: TreeFilter;
  /** Maximum number of candidates of one search. */
  readonly limit: number;
}

/** What the Placement API's GET /allocation_candidates asks for: every candidate, parsed and checked. */
export interface PlacementCandidateRequest extends GroupsRequest, Pick<GroupRules, "sameSubtree"> {
  readonly rootRules?: RootTraits;
  /** Maximum number of candidates, or null when the caller states none. */
  readonly limit: number | null;
  /** False before 1.29: a candidate then takes its resources from one provider of a tree, besides sharing providers. */
  readonly nested: boolean;
}

export const ANY_TREE: TreeFilter = { openHostsOnly: false, excludedHosts: new Set() };
export const OPEN_HOSTS: TreeFilter = { openHostsOnly: true, excludedHosts: new Set() };

/** The rules on traits that the providers of a group must satisfy: at least one trait of each list. */
export function requiredRules({ requiredTraits, requiredAny }: RequestGroup): readonly (readonly Trait[])[] {
  return [...[...requiredTraits].map((name) => [name]), ...requiredAny.map((names) => [...names])];
}

/** Builds a request group with defaults that ask for nothing. */
export function requestGroup(
  group: Partial<Omit<RequestGroup, "resources">> & { readonly resources: ReadonlyMap<ResourceClass, number> },
): RequestGroup {
  return {
    suffix: "",
    requiredTraits: new Set(),
    requiredAny: [],
    forbiddenTraits: new Set(),
    memberOf: [],
    forbiddenAggregates: new Set(),
    inTree: null,
    ...group,
  };
}
