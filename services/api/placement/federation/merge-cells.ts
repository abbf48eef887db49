import type { ResourceClass } from "../../../../core/ledger/ids.ts";
import type { ConsumerTypeUsage, NameRow } from "../../../../core/stores/cell/placement-store.ts";

/** Merges the names of several cells: each name occurs once, in the order of the first cell that has it, with its newest time. */
export function mergeNames<Name extends string>(
  lists: readonly (readonly NameRow<Name>[])[],
): readonly NameRow<Name>[] {
  if (lists.length === 1) return lists[0]!;
  const byName = new Map<Name, NameRow<Name>>();
  for (const row of lists.flat()) {
    const known = byName.get(row.name);
    if (known === undefined || known.updatedAtMs < row.updatedAtMs) byName.set(row.name, row);
  }
  return [...byName.values()];
}

/** Adds up the usages of several cells. Each consumer is in one cell, so the numbers of consumers can be added, too. */
export function mergeUsages(lists: readonly (readonly ConsumerTypeUsage[])[]): readonly ConsumerTypeUsage[] {
  if (lists.length === 1) return lists[0]!;
  const byType = Map.groupBy(lists.flat(), (usage) => usage.type);
  return [...byType].map(([type, usages]) => {
    const sums = new Map<ResourceClass, number>();
    for (const usage of usages)
      for (const [name, amount] of usage.usages) sums.set(name, (sums.get(name) ?? 0) + amount);
    return { type, consumerCount: usages.reduce((sum, usage) => sum + usage.consumerCount, 0), usages: sums };
  });
}
