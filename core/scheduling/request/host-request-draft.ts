import { type GroupPolicy, type RequestGroup, requestGroup } from "../../candidates/request.ts";
import {
  type AggregateUuid,
  aggregateUuid,
  type ResourceClass,
  resourceClass,
  type Trait,
  trait,
} from "../../ledger/ids.ts";
import type { HostRequest } from "../host-request.ts";
import { VGPU_WITH_DISPLAY } from "./display-heads.ts";
import { badExtraSpec, type RequestRefusal } from "./request-refusal.ts";

export interface GroupDraft {
  /** By class. An amount of 0 removes the class that the flavor's size would otherwise add. */
  readonly resources: Map<ResourceClass, number>;
  readonly required: Set<Trait>;
  readonly forbidden: Set<Trait>;
}

/** A host request under construction by rules and filters. */
export class HostRequestDraft {
  groupPolicy: GroupPolicy | null = null;
  readonly sameSubtree: (readonly string[])[] = [];
  readonly apart: (readonly string[])[] = [];
  /** Traits required of the tree's root. */
  readonly required = new Set<Trait>();
  readonly forbidden = new Set<Trait>();
  readonly memberOf: ReadonlySet<AggregateUuid>[] = [];
  readonly forbiddenAggregates = new Set<AggregateUuid>();
  onlyHosts: ReadonlySet<string> | null = null;
  readonly #groups = new Map<string, GroupDraft>();
  /** Suffixes that a flavor's author chose. Such a flavor must say how its groups share providers. */
  readonly #named = new Set<string>();

  /** The group with this suffix, which is created when missing; "" is the unnumbered group. */
  group(suffix: string): GroupDraft {
    const known = this.#groups.get(suffix);
    if (known) return known;
    const draft: GroupDraft = { resources: new Map(), required: new Set(), forbidden: new Set() };
    this.#groups.set(suffix, draft);
    return draft;
  }

  namedGroup(suffix: string): GroupDraft {
    if (suffix !== "") this.#named.add(suffix);
    return this.group(suffix);
  }

  suffixes(): string[] {
    return [...this.#groups.keys()];
  }

  /** Increases the amount of a class in a group. */
  add(suffix: string, name: string, amount: number): void {
    const { resources } = this.group(suffix);
    resources.set(resourceClass(name), (resources.get(resourceClass(name)) ?? 0) + amount);
  }

  /** Whether any group names the class, even if only to remove it. */
  names(name: string): boolean {
    return [...this.#groups.values()].some(({ resources }) => resources.has(resourceClass(name)));
  }

  requireOfRoot(name: string): void {
    this.required.add(trait(name));
  }

  requireAggregates(uuids: Iterable<string>): void {
    this.memberOf.push(new Set([...uuids].map(aggregateUuid)));
  }

  forbidAggregates(uuids: Iterable<string>): void {
    for (const uuid of uuids) this.forbiddenAggregates.add(aggregateUuid(uuid));
  }

  /** All traits that the root or any group requires. */
  requiredTraits(): Set<Trait> {
    return new Set([...this.required, ...[...this.#groups.values()].flatMap(({ required }) => [...required])]);
  }

  /** Completes the host request. It refuses whatever Placement would refuse. */
  finish(): { readonly kind: "host-request"; readonly hostRequest: HostRequest } | RequestRefusal {
    const groups: RequestGroup[] = [];
    for (const [suffix, draft] of this.#groups) {
      const group = this.#finishGroup(suffix, draft);
      if (group === null) continue;
      if ("kind" in group) return group;
      groups.push(group);
    }
    const refused = this.#refuse(groups);
    if (refused) return refused;
    const rootRules = {
      requiredTraits: this.required,
      forbiddenTraits: this.forbidden,
      memberOf: this.memberOf,
      forbiddenAggregates: this.forbiddenAggregates,
    };
    const { sameSubtree, apart, onlyHosts } = this;
    const asksOfRoot = [this.required, this.forbidden, this.forbiddenAggregates].some((set) => set.size > 0);
    const hostRequest: HostRequest = {
      groups,
      groupPolicy: this.groupPolicy ?? "none",
      ...(sameSubtree.length > 0 && { sameSubtree }),
      ...(apart.length > 0 && { apart }),
      ...((asksOfRoot || this.memberOf.length > 0) && { rootRules }),
      ...(onlyHosts && { onlyHosts }),
    };
    return { kind: "host-request", hostRequest };
  }

  /** Completes one group. Null when the group asks for nothing. */
  #finishGroup(
    suffix: string,
    { resources: amounts, required, forbidden }: GroupDraft,
  ): RequestGroup | RequestRefusal | null {
    const resources = new Map([...amounts].filter(([, amount]) => amount > 0));
    const inSubtree = this.sameSubtree.some((suffixes) => suffixes.includes(suffix));
    if (resources.size > 0 || (inSubtree && required.size > 0)) {
      const group = { suffix, resources, requiredTraits: required, forbiddenTraits: forbidden };
      // A display belongs to a VGPU, so both are of one card. A numbered group has one provider anyway.
      const isTied = suffix === "" && VGPU_WITH_DISPLAY.every((name) => resources.has(name));
      return requestGroup({ ...group, ...(isTied && { oneProvider: VGPU_WITH_DISPLAY }) });
    }
    const [name] = [...required, ...forbidden];
    if (name === undefined) return null;
    if (suffix === "" && [...this.#groups].some(([other, { resources: some }]) => other !== "" && some.size > 0)) {
      // All resources come from numbered groups, so only the root can have the traits.
      for (const one of required) this.required.add(one);
      for (const one of forbidden) this.forbidden.add(one);
      return null;
    }
    const value = required.has(name) ? "required" : "forbidden";
    return badExtraSpec(
      `trait${suffix}:${name}`,
      value,
      `in a group that requests resources, like resources${suffix}:CLASS=N`,
    );
  }

  #refuse(groups: readonly RequestGroup[]): RequestRefusal | null {
    if (!groups.some((group) => group.resources.size > 0))
      return badExtraSpec("resources:CLASS", "", "given, because the flavor requests no resources");
    if (this.groupPolicy === null && groups.filter(({ suffix }) => this.#named.has(suffix)).length > 1)
      return badExtraSpec("group_policy", "", "none or isolate, because there is more than one numbered request group");
    const suffixes = new Set(groups.map(({ suffix }) => suffix));
    for (const list of this.sameSubtree) {
      if (!list.every((suffix) => suffix !== "" && suffixes.has(suffix)))
        return badExtraSpec("same_subtree", list.join(), "suffixes of existing numbered groups, like _A,_B");
    }
    return null;
  }
}
