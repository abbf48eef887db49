import { assert } from "../assert.ts";
import type { ProviderUuid, ResourceClass } from "./ids.ts";
import { compare, type LedgerDecision, type LedgerState, providerRow, unchanged } from "./ledger-state.ts";
import type { Inventory, Provider } from "./model.ts";
import type { ProviderSpec, ProviderTree, TreeOutcome } from "./provider-tree.ts";
import type { RowChange } from "./row-change.ts";

type Inventories = Provider["inventories"];
type MalformedTree = Extract<TreeOutcome, { readonly kind: "malformed" }>;

/**
 * Decides the replacement of a whole provider tree. Refuses, in this order: a list that is not a tree, an unexpected generation, a name that
 * another tree's provider has, and the removal of something in use. The generation of each provider that differs rises by one, and a new
 * provider starts at 0. An inventory may shrink below its use, and then accepts no more claims.
 *
 * Source: Placement's inventories, traits and provider API, with the rule of Nova's agents that an unchanged report writes nothing. Cost:
 * proportional to the tree. `ledger_put_trees` is the same in SQL.
 */
export function decideTree(state: LedgerState, tree: ProviderTree): LedgerDecision<TreeOutcome> {
  const refusal =
    malformedList(tree) ??
    foreignMember(state, tree) ??
    generationConflict(state, tree) ??
    takenName(state, tree) ??
    inUse(state, tree);
  return refusal === null ? replaceTree(state, tree) : unchanged<TreeOutcome>(refusal);
}

/** Returns the fault of a list regardless of the ledger's content, or null when it is a tree. Both implementations call this. */
export function malformedList(tree: ProviderTree): MalformedTree | null {
  const malformed = (provider: ProviderUuid, why: string): MalformedTree => ({ kind: "malformed", provider, why });
  if (tree.providers[0]?.uuid !== tree.root) return malformed(tree.root, "the root is not the first of the list");
  const seen = new Set<ProviderUuid>();
  const names = new Set<string>();
  for (const spec of tree.providers) {
    if (seen.has(spec.uuid)) return malformed(spec.uuid, "the provider is listed twice");
    if (spec.uuid === tree.root && spec.parent !== null) return malformed(spec.uuid, "the root has a parent");
    if (spec.uuid !== tree.root && (spec.parent === null || !seen.has(spec.parent))) {
      return malformed(spec.uuid, "its parent is not before it in the list");
    }
    if (names.has(spec.name)) return malformed(spec.uuid, "another provider of the list has the same name");
    seen.add(spec.uuid);
    names.add(spec.name);
  }
  return null;
}

/** The reason that `foreignMember` and `ledger_put_trees` give for a provider of another tree. */
export const WHY_FOREIGN = "the provider belongs to another tree";

function foreignMember(state: LedgerState, tree: ProviderTree): TreeOutcome | null {
  const foreign = tree.providers.find(({ uuid }) => (state.providers.get(uuid)?.root ?? tree.root) !== tree.root);
  return foreign === undefined ? null : { kind: "malformed", provider: foreign.uuid, why: WHY_FOREIGN };
}

function generationConflict(state: LedgerState, tree: ProviderTree): TreeOutcome | null {
  for (const { uuid, expected } of tree.providers) {
    const actual = state.providers.get(uuid)?.generation ?? null;
    if (expected !== "any" && expected !== actual) {
      return { kind: "generation-conflict", provider: uuid, expected, actual };
    }
  }
  return null;
}

function takenName(state: LedgerState, tree: ProviderTree): TreeOutcome | null {
  for (const { uuid, name } of tree.providers) {
    const owner = state.names.get(name);
    if (owner !== undefined && state.providers.get(owner)?.root !== tree.root) {
      return { kind: "name-taken", provider: uuid, name };
    }
  }
  return null;
}

/**
 * The first thing in use that the list would remove. Listed providers are checked first, in their order and by class. The missing ones
 * follow, by UUID.
 */
function inUse(state: LedgerState, tree: ProviderTree): TreeOutcome | null {
  for (const spec of tree.providers) {
    const held = [...(state.providers.get(spec.uuid)?.inventories ?? [])]
      .filter(([resourceClass, { used }]) => used > 0 && !spec.inventories.has(resourceClass))
      .map(([resourceClass]) => resourceClass)
      .sort(compare);
    if (held[0] !== undefined) return { kind: "in-use", provider: spec.uuid, resourceClass: held[0] };
  }
  for (const { uuid, inventories } of leftOut(state, tree)) {
    if ([...inventories.values()].some(({ used }) => used > 0)) {
      return { kind: "in-use", provider: uuid, resourceClass: null };
    }
  }
  return null;
}

/** The members of the tree that the list does not contain, sorted by UUID. */
function leftOut(state: LedgerState, tree: ProviderTree): Provider[] {
  const listed = new Set(tree.providers.map(({ uuid }) => uuid));
  return [...(state.trees.get(tree.root) ?? [])]
    .filter((uuid) => !listed.has(uuid))
    .sort(compare)
    .map((uuid) => state.providers.get(uuid)!);
}

/** The rows of a removed provider except the provider's own. */
function partsRemoved({ uuid, inventories, traits, aggregates }: Provider): RowChange[] {
  return [
    ...Array.from(inventories.keys(), (resourceClass) => ({
      ...{ kind: "inventory-removed" as const, provider: uuid, resourceClass },
    })),
    ...Array.from(traits, (trait) => ({ kind: "trait-removed" as const, provider: uuid, trait })),
    ...Array.from(aggregates, (aggregate) => ({ kind: "aggregate-removed" as const, provider: uuid, aggregate })),
  ];
}

/** The removal of a whole tree. The caller has checked that nothing of it is allocated. */
export function removalOfTree(state: LedgerState, root: ProviderUuid): LedgerDecision<void> {
  const members = [...(state.trees.get(root) ?? [])].sort(compare).map((uuid) => state.providers.get(uuid)!);
  for (const { inventories } of members)
    for (const { used } of inventories.values()) assert(used === 0, "a tree that is in use is removed");
  const removed = members.map(({ uuid }): RowChange => ({ kind: "provider-removed", uuid }));
  return {
    outcome: undefined,
    delta: {
      providers: new Map(members.map(({ uuid }) => [uuid, null])),
      consumers: new Map(),
      rows: [...members.flatMap(partsRemoved), ...removed],
    },
  };
}

function replaceTree(state: LedgerState, tree: ProviderTree): LedgerDecision<TreeOutcome> {
  const providers = new Map<ProviderUuid, Provider | null>();
  const rows: RowChange[] = [];
  const generations = new Map<ProviderUuid, number>();
  for (const provider of leftOut(state, tree)) {
    providers.set(provider.uuid, null);
    rows.push(...partsRemoved(provider));
  }
  for (const spec of tree.providers) {
    const before = state.providers.get(spec.uuid);
    const after = providerOf(spec, tree.root, before);
    const changes = differences(before, after);
    const moved = before?.name !== after.name || before.parent !== after.parent;
    if (moved || changes.length > 0) {
      const raised = { ...after, generation: before === undefined ? 0 : before.generation + 1 };
      providers.set(spec.uuid, raised);
      rows.push(providerRow(raised), ...changes);
    }
    generations.set(spec.uuid, providers.get(spec.uuid)?.generation ?? after.generation);
  }
  // Missing providers are removed last, because by then a child that stays has its new parent.
  for (const [provider, record] of providers)
    if (record === null) rows.push({ kind: "provider-removed", uuid: provider });
  const kind = providers.size === 0 ? "unchanged" : "replaced";
  return { outcome: { kind, generations }, delta: { providers, consumers: new Map(), rows } };
}

/** The provider record that the report asks for, with the generation of the previous record. */
function providerOf(spec: ProviderSpec, root: ProviderUuid, before: Provider | undefined): Provider {
  const { uuid, name, parent, traits } = spec;
  const inventories: Inventories = new Map(
    [...spec.inventories].map(([resourceClass, inventory]) => [
      resourceClass,
      { ...inventory, used: before?.inventories.get(resourceClass)?.used ?? 0 },
    ]),
  );
  const aggregates = spec.aggregates ?? before?.aggregates ?? new Set();
  return { uuid, name, parent, root, generation: before?.generation ?? 0, inventories, traits, aggregates };
}

/** The rows in which two records of one provider differ, except the provider's own row. */
function differences(before: Provider | undefined, after: Provider): RowChange[] {
  const provider = after.uuid;
  const rows: RowChange[] = [];
  for (const [resourceClass, { used, ...inventory }] of after.inventories) {
    if (!sameInventory(before?.inventories.get(resourceClass), inventory)) {
      rows.push({ kind: "inventory-put", provider, resourceClass, inventory, used });
    }
  }
  for (const resourceClass of gone<ResourceClass>(before?.inventories.keys(), after.inventories)) {
    rows.push({ kind: "inventory-removed", provider, resourceClass });
  }
  for (const trait of gone(after.traits, before?.traits)) rows.push({ kind: "trait-added", provider, trait });
  for (const trait of gone(before?.traits, after.traits)) rows.push({ kind: "trait-removed", provider, trait });
  for (const aggregate of gone(after.aggregates, before?.aggregates)) {
    rows.push({ kind: "aggregate-added", provider, aggregate });
  }
  for (const aggregate of gone(before?.aggregates, after.aggregates)) {
    rows.push({ kind: "aggregate-removed", provider, aggregate });
  }
  return rows;
}

function sameInventory(a: Inventory | undefined, b: Inventory): boolean {
  return (
    a !== undefined &&
    a.total === b.total &&
    a.reserved === b.reserved &&
    a.minUnit === b.minUnit &&
    a.maxUnit === b.maxUnit &&
    a.stepSize === b.stepSize &&
    a.allocationRatio === b.allocationRatio
  );
}

/** The items of the first collection that the second does not have. */
function gone<Item>(from: Iterable<Item> | undefined, to: { has(item: Item): boolean } | undefined): Item[] {
  return [...(from ?? [])].filter((item) => to?.has(item) !== true);
}
