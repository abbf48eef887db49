import type { LedgerDump } from "../../core/ledger/ledger-dump.ts";
import { capacityOf } from "../../core/ledger/model.ts";

/** Violations of law 1 in a ledger, one line each. Empty when it holds. `used` must always equal the sum of the allocations. */
export function brokenSums(dump: LedgerDump): readonly string[] {
  const sums = new Map<string, number>();
  for (const { items } of dump.consumers) {
    for (const { provider, resourceClass, amount } of items) {
      const key = `${provider} ${resourceClass}`;
      sums.set(key, (sums.get(key) ?? 0) + amount);
    }
  }
  const broken: string[] = dump.consumers
    .filter(({ items }) => items.length === 0)
    .map(({ uuid }) => `consumer ${uuid} holds nothing`);
  for (const { uuid, inventories } of dump.providers) {
    for (const [resourceClass, { used }] of inventories) {
      const key = `${uuid} ${resourceClass}`;
      if (used !== (sums.get(key) ?? 0)) broken.push(`${key}: used ${used}, allocated ${sums.get(key) ?? 0}`);
      sums.delete(key);
    }
  }
  return [...broken, ...[...sums.keys()].map((key) => `${key}: allocated, but there is no inventory`)];
}

/** Every inventory that is used beyond its capacity. That is only lawful when the inventory shrank below its use. */
export function overCapacity(dump: LedgerDump): readonly string[] {
  return dump.providers.flatMap(({ uuid, inventories }) =>
    [...inventories]
      .filter(([, entry]) => entry.used > capacityOf(entry))
      .map(([resourceClass, entry]) => `${uuid} ${resourceClass}: used ${entry.used} of ${capacityOf(entry)}`),
  );
}
