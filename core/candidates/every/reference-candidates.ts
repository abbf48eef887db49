import { type ProviderUuid, type Trait, trait } from "../../ledger/ids.ts";
import { capacityOf, type Provider } from "../../ledger/model.ts";
import { type PlacementCandidateRequest, type RequestGroup, type RootTraits, requiredRules } from "../request.ts";
import type { FoundCandidate } from "./found-candidates.ts";

/**
 * Computes Placement's candidates the slow way: it forms every product of every group's choices and filters them afterwards, as upstream's
 * documentation describes the answer. It is only for tests, which compare the search with it. Its cost is the number of combinations.
 */
export function referenceCandidates(
  providers: readonly Provider[],
  request: PlacementCandidateRequest,
): ReadonlySet<string> {
  return new ReferenceSearch(providers, request).candidates();
}

interface Part {
  readonly suffix: string;
  readonly provider: Provider;
  readonly amounts: readonly (readonly [name: string, amount: number])[];
}

class ReferenceSearch {
  readonly #providers: readonly Provider[];
  readonly #request: PlacementCandidateRequest;
  readonly #byUuid: ReadonlyMap<ProviderUuid, Provider>;

  constructor(providers: readonly Provider[], request: PlacementCandidateRequest) {
    this.#providers = providers;
    this.#request = request;
    this.#byUuid = new Map(providers.map((provider) => [provider.uuid, provider]));
  }

  candidates(): ReadonlySet<string> {
    const found = new Set<string>();
    const trees = this.#request.groups.flatMap((group) => group.inTree ?? []);
    if (!trees.every((uuid) => this.#byUuid.has(uuid))) return found;
    for (const root of this.#providers.filter((provider) => provider.parent === null)) {
      if (!hasRootTraits(root, this.#request.rootRules)) continue;
      for (const parts of product(this.#request.groups.map((group) => this.#choices(group, root)))) {
        const all = parts.flat();
        if (this.#serves(all)) found.add(describe(all));
      }
    }
    return found;
  }

  /** Every way in which one group can be served in the tree of this root. */
  #choices(group: RequestGroup, root: Provider): readonly (readonly Part[])[] {
    const reach = this.#providers.filter((provider) => provider.root === root.uuid || this.#lendsTo(provider, root));
    const amounts = [...group.resources];
    if (group.suffix !== "") {
      if (amounts.length === 0 && requiredRules(group).length === 0 && group.memberOf.length === 0) return [];
      return reach
        .filter((provider) => this.#servesAlone(group, provider))
        .map((provider) => [{ suffix: group.suffix, provider, amounts }]);
    }
    const options = amounts.map((requested) =>
      reach
        .filter((provider) => this.#givesClass(group, provider, root, requested))
        .map((provider): Part => ({ suffix: "", provider, amounts: [requested] })),
    );
    return product(options).filter((parts) => {
      const traits = new Set(parts.flatMap((part) => [...part.provider.traits]));
      return requiredRules(group).every((any) => any.some((name) => traits.has(name)));
    });
  }

  #servesAlone(group: RequestGroup, provider: Provider): boolean {
    return (
      [...group.resources].every(([name, amount]) => hasRoom(provider, name, amount)) &&
      (group.inTree === null || group.resources.size === 0 || this.#byUuid.get(group.inTree)?.root === provider.root) &&
      hasTraits(provider, requiredRules(group), group.forbiddenTraits) &&
      isMember(provider, group) &&
      group.forbiddenAggregates.isDisjointFrom(provider.aggregates)
    );
  }

  #givesClass(
    group: RequestGroup,
    provider: Provider,
    root: Provider,
    [name, amount]: readonly [string, number],
  ): boolean {
    const lent = provider.root !== root.uuid;
    if (group.inTree !== null && (lent || this.#byUuid.get(group.inTree)?.root !== root.uuid)) return false;
    const banned = [provider, root].some((one) => !group.forbiddenAggregates.isDisjointFrom(one.aggregates));
    return (
      hasRoom(provider, name, amount) &&
      !banned &&
      group.forbiddenTraits.isDisjointFrom(provider.traits) &&
      (isMember(provider, group) || (!lent && isMember(root, group)))
    );
  }

  #lendsTo(provider: Provider, root: Provider): boolean {
    if (!provider.traits.has(trait("MISC_SHARES_VIA_AGGREGATE")) || provider.root === root.uuid) return false;
    return this.#providers.some(
      (other) => other.root === root.uuid && [...other.aggregates].some((one) => provider.aggregates.has(one)),
    );
  }

  /** Checks the rules that concern several groups together. */
  #serves(parts: readonly Part[]): boolean {
    const granular = parts.filter((part) => part.suffix !== "");
    if (
      this.#request.groupPolicy === "isolate" &&
      new Set(granular.map((part) => part.provider.uuid)).size < granular.length
    )
      return false;
    const used = new Set(parts.map((part) => part.provider));
    const nested = this.#providers.some((provider) => provider.parent !== null);
    if (!this.#request.nested && nested && new Set([...used].map((one) => one.root)).size < used.size) return false;
    return (
      (this.#request.sameSubtree ?? []).every((suffixes) => this.#isSubtree(parts, suffixes)) && fitsTogether(parts)
    );
  }

  #isSubtree(parts: readonly Part[], suffixes: readonly string[]): boolean {
    const named = parts.filter((part) => suffixes.includes(part.suffix)).map((part) => part.provider);
    return named.some((top) => named.every((one) => this.#ancestors(one).has(top.uuid)));
  }

  #ancestors(provider: Provider): ReadonlySet<ProviderUuid> {
    const found = new Set<ProviderUuid>();
    for (
      let one: Provider | undefined = provider;
      one;
      one = one.parent === null ? undefined : this.#byUuid.get(one.parent)
    )
      found.add(one.uuid);
    return found;
  }
}

function hasRoom(provider: Provider, name: string, amount: number): boolean {
  const inventory = [...provider.inventories].find(([held]) => held === name)?.[1];
  return (
    inventory !== undefined &&
    inventory.used + amount <= capacityOf(inventory) &&
    amount >= inventory.minUnit &&
    amount <= inventory.maxUnit &&
    amount % inventory.stepSize === 0
  );
}

function fitsTogether(parts: readonly Part[]): boolean {
  const sums = new Map<string, { provider: Provider; name: string; amount: number }>();
  for (const { provider, amounts } of parts) {
    for (const [name, amount] of amounts) {
      const key = `${provider.uuid} ${name}`;
      sums.set(key, { provider, name, amount: (sums.get(key)?.amount ?? 0) + amount });
    }
  }
  return [...sums.values()].every(({ provider, name, amount }) => {
    const inventory = [...provider.inventories].find(([held]) => held === name)![1];
    return inventory.used + amount <= capacityOf(inventory) && amount <= inventory.maxUnit;
  });
}

function hasTraits(
  provider: Provider,
  required: readonly (readonly Trait[])[],
  forbidden: ReadonlySet<Trait>,
): boolean {
  return (
    required.every((any) => any.some((name) => provider.traits.has(name))) && forbidden.isDisjointFrom(provider.traits)
  );
}

const hasRootTraits = (root: Provider, rules: RootTraits | undefined): boolean =>
  rules === undefined ||
  hasTraits(
    root,
    [...rules.requiredTraits].map((name) => [name]),
    rules.forbiddenTraits,
  );

const isMember = (provider: Provider, group: RequestGroup): boolean =>
  group.memberOf.every((any) => !any.isDisjointFrom(provider.aggregates));

function product<Item>(lists: readonly (readonly Item[])[]): Item[][] {
  return lists.reduce<Item[][]>((so, list) => so.flatMap((items) => list.map((item) => [...items, item])), [[]]);
}

function describe(parts: readonly (Omit<Part, "provider"> & { provider: Pick<Provider, "uuid"> })[]): string {
  const resources = new Map<string, number>();
  const mappings = new Set<string>();
  for (const { suffix, provider, amounts } of parts) {
    mappings.add(`${suffix}=${provider.uuid}`);
    for (const [name, amount] of amounts)
      resources.set(`${provider.uuid}.${name}`, (resources.get(`${provider.uuid}.${name}`) ?? 0) + amount);
  }
  return `${[...resources]
    .map(([key, amount]) => `${key}:${amount}`)
    .sort()
    .join()} | ${[...mappings].sort().join()}`;
}

/** Describes a candidate of the search in the same format as `referenceCandidates`. */
export function describeCandidate({ view, choices, slots }: FoundCandidate): string {
  const parts = choices.map(({ group, amounts }, at) => ({
    suffix: group.suffix,
    provider: { uuid: view.slots.uuid(slots[at]!) },
    amounts: amounts.map((requested) => [requested.resourceClass, requested.amount] as const),
  }));
  return describe(parts);
}
