import type { ProviderUuid, ResourceClass, Trait } from "./ids.ts";
import type { Inventory, Provider } from "./model.ts";
import type { ProviderTree } from "./provider-tree.ts";

/** What one stored provider must get and lose to be as a tree lists it. */
export interface ProviderDifference {
  readonly provider: ProviderUuid;
  /** The generation of the stored provider. */
  readonly generation: number;
  readonly set: readonly (readonly [ResourceClass, Inventory])[];
  readonly removed: readonly ResourceClass[];
  readonly gained: readonly Trait[];
  readonly lost: readonly Trait[];
}

/**
 * The differences of the stored providers of a tree from its list, or null when the two differ in more than inventories and traits: a provider is
 * new, gone, renamed, moved, or listed with an expected generation or with aggregates. Cost: proportional to the tree.
 */
export function treeDifference(tree: ProviderTree, stored: readonly Provider[]): readonly ProviderDifference[] | null {
  if (tree.providers.length !== stored.length) return null;
  const byUuid = new Map(stored.map((provider) => [provider.uuid, provider]));
  const differences: ProviderDifference[] = [];
  for (const spec of tree.providers) {
    const before = byUuid.get(spec.uuid);
    if (before === undefined || before.name !== spec.name || before.parent !== spec.parent) return null;
    if (spec.expected !== "any" || spec.aggregates !== undefined) return null;
    const set = [...spec.inventories].filter(
      ([name, inventory]) => !isSameInventory(before.inventories.get(name), inventory),
    );
    const removed = [...before.inventories.keys()].filter((name) => !spec.inventories.has(name));
    const gained = [...spec.traits].filter((name) => !before.traits.has(name));
    const lost = [...before.traits].filter((name) => !spec.traits.has(name));
    if (set.length + removed.length + gained.length + lost.length > 0)
      differences.push({ provider: spec.uuid, generation: before.generation, set, removed, gained, lost });
  }
  return differences;
}

/** Whether an inventory is stored with these values. What is used of it does not matter. */
function isSameInventory(stored: Inventory | undefined, wanted: Inventory): boolean {
  return (
    stored !== undefined &&
    (["total", "reserved", "minUnit", "maxUnit", "stepSize", "allocationRatio"] as const).every(
      (key) => stored[key] === wanted[key],
    )
  );
}
