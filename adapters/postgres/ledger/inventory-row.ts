import type { Inventory } from "../../../core/ledger/model.ts";

/** The columns of `inventories` that are an inventory's own: all except its provider, its class, its use and its times. */
export interface InventoryColumns {
  readonly total: number;
  readonly reserved: number;
  readonly min_unit: number;
  readonly max_unit: number;
  readonly step_size: number;
  readonly allocation_ratio: number;
}

/** Returns the inventory of a row. */
export function inventoryOfRow(row: InventoryColumns): Inventory {
  return {
    total: row.total,
    reserved: row.reserved,
    minUnit: row.min_unit,
    maxUnit: row.max_unit,
    stepSize: row.step_size,
    allocationRatio: row.allocation_ratio,
  };
}
