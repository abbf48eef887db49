import { assert } from "../../assert.ts";
import type { ResourceClass } from "../../ledger/ids.ts";
import type { InventoryColumn } from "../../ledger/inventory-column.ts";

/** An amount of one resource class, with the view's column that says how much of it each provider has. */
export interface RequestedAmount {
  readonly resourceClass: ResourceClass;
  readonly amount: number;
  readonly column: Readonly<InventoryColumn>;
  /** True when free room alone decides, because no inventory of the class has a unit rule that could refuse the amount. */
  readonly roomDecides: boolean;
}

/** Binds an amount of at least 1 to the column of its class. The result is valid until the column changes. */
export function requestAmount(
  resourceClass: ResourceClass,
  amount: number,
  column: Readonly<InventoryColumn>,
): RequestedAmount {
  assert(Number.isSafeInteger(amount) && amount >= 1, "amounts are whole numbers of at least 1");
  const roomDecides = column.unevenCount === 0 && amount <= column.maxUnitAtLeast;
  return { resourceClass, amount, column, roomDecides };
}

/** Whether the provider alone has room for the amount and its unit rules permit it. Cost: a few array reads. */
export function hasRoom({ column, amount, roomDecides }: RequestedAmount, slot: number): boolean {
  if (column.free[slot]! < amount) return false;
  if (roomDecides) return true;
  return amount >= column.minUnit[slot]! && amount <= column.maxUnit[slot]! && amount % column.stepSize[slot]! === 0;
}
