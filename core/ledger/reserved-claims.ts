import type { ChangedRoots } from "./changed-roots.ts";
import type { ResourceClass } from "./ids.ts";
import type { InventoryColumn } from "./inventory-column.ts";
import type { AllocationItem } from "./model.ts";
import type { ProviderSlots } from "./provider-slots.ts";

interface Arrays {
  readonly slots: ProviderSlots;
  readonly columns: ReadonlyMap<ResourceClass, InventoryColumn>;
  readonly changes: ChangedRoots;
}

/**
 * Claims that a ledger view does not show yet, because they are in flight to the database, or committed and not yet replicated. Their
 * amounts are subtracted from the free amounts, so that searches see them as used at no cost.
 */
export class ReservedClaims {
  readonly #claims = new Map<
    string,
    { readonly items: readonly AllocationItem[]; reserved: readonly ReservedItem[] }
  >();

  get count(): number {
    return this.#claims.size;
  }

  add(arrays: Arrays, id: string, items: readonly AllocationItem[]): void {
    this.release(arrays, id);
    this.#claims.set(id, { items, reserved: reserve(arrays, items) });
  }

  release({ slots, changes }: Arrays, id: string): void {
    const claim = this.#claims.get(id);
    if (!claim) return;
    this.#claims.delete(id);
    for (const { column, slot, amount } of claim.reserved) {
      column.reserve(slot, -amount);
      changes.touch(slots.root[slot]!);
    }
  }

  /** Reserves all claims again, because the slots or columns have been replaced. */
  reserveAgain(arrays: Arrays): void {
    for (const claim of this.#claims.values()) {
      for (const { column, slot, amount } of claim.reserved) column.reserve(slot, -amount);
      claim.reserved = reserve(arrays, claim.items);
    }
  }
}

interface ReservedItem {
  readonly column: InventoryColumn;
  readonly slot: number;
  readonly amount: number;
}

/** Returns the items that were reserved. Items of providers or inventories that the view does not know are skipped. */
function reserve({ slots, columns, changes }: Arrays, items: readonly AllocationItem[]): ReservedItem[] {
  const reserved: ReservedItem[] = [];
  for (const { provider, resourceClass, amount } of items) {
    const slot = slots.find(provider);
    const column = columns.get(resourceClass);
    if (slot < 0 || !column) continue;
    column.reserve(slot, amount);
    changes.touch(slots.root[slot]!);
    reserved.push({ column, slot, amount });
  }
  return reserved;
}
