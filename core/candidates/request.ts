import type { AggregateUuid, ProviderUuid, ResourceClass, Trait } from "../ledger/ids.ts";

/**
 * What is wanted of one provider (a numbered group), or of one tree (the unnumbered group, suffix ""). The Placement API's
 * request group: `resources`, `required`, `member_of`, `in_tree` with their suffix.
 */
export interface RequestGroup {
  /** "" for the unnumbered group, of which there is at most one; else `1`, `_NIC`, … */
  readonly suffix: string;
  /** Amounts of at least 1. Only a numbered group may have none: it names a provider by its traits, for `sameSubtree`. */
  readonly resources: ReadonlyMap<ResourceClass, number>;
  /** A numbered group: the provider has them all. The unnumbered one: the providers that serve it have them together. */
  readonly requiredTraits: ReadonlySet<Trait>;
  /** `in:` - of each set at least one. */
  readonly requiredAny: readonly ReadonlySet<Trait>[];
  /** No provider that serves the group has any of them. */
  readonly forbiddenTraits: ReadonlySet<Trait>;
  /** Of each set the provider is a member of at least one (unnumbered group: the provider, or its root). */
  readonly memberOf: readonly ReadonlySet<AggregateUuid>[];
  /** The provider (unnumbered group: and its root) is a member of none. */
  readonly forbiddenAggregates: ReadonlySet<AggregateUuid>;
  /** Only in the tree that this provider belongs to. */
  readonly inTree: ProviderUuid | null;
}

/** `none`: several numbered groups may land on one provider; `isolate`: each on one of its own. */
export type GroupPolicy = "none" | "isolate";

/** Which trees are looked at, decided before any limit. */
export interface TreeFilter {
  /** Only trees of hosts that are up and not disabled. */
  readonly openHostsOnly: boolean;
  readonly excludedHosts: ReadonlySet<string>;
  /** Only the trees of these hosts; without it, of any. */
  readonly onlyHosts?: ReadonlySet<string>;
}

/** What the root of a tree must be like, whichever providers serve the groups. */
export interface RootRules {
  readonly requiredTraits: ReadonlySet<Trait>;
  readonly forbiddenTraits: ReadonlySet<Trait>;
  /** Of each set it is a member of at least one. */
  readonly memberOf: readonly ReadonlySet<AggregateUuid>[];
  readonly forbiddenAggregates: ReadonlySet<AggregateUuid>;
}

/** Rules between numbered groups, by their suffixes. */
export interface GroupRules {
  /** Of the providers that serve the groups of a list, one is at or above all the others (the Placement API's `same_subtree`). */
  readonly sameSubtree?: readonly (readonly string[])[];
  /** Groups of a list are served by different providers, except that the root may serve several: a flat host has no others. */
  readonly apart?: readonly (readonly string[])[];
}

export interface CandidateRequest extends GroupRules {
  readonly groups: readonly RequestGroup[];
  readonly groupPolicy: GroupPolicy;
  readonly rootRules?: RootRules;
  readonly trees: TreeFilter;
  /** Most candidates of one search. */
  readonly limit: number;
}

export const ANY_TREE: TreeFilter = { openHostsOnly: false, excludedHosts: new Set() };
export const OPEN_HOSTS: TreeFilter = { openHostsOnly: true, excludedHosts: new Set() };

/** A request group that asks for nothing but what is given. */
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
