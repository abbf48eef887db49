import { capacityOf, type Inventory } from "./model.ts";

/**
 * One resource class of a ledger view: the inventories of all providers, as arrays by slot. The arrays are replaced when they grow, so they
 * must be read again for each search.
 */
export class InventoryColumn {
  /**
   * capacity − used − reserved by claims, or -1 where the provider has no inventory of the class. Negative after a capacity was lowered below its use.
   */
  free: Float64Array;
  used: Float64Array;
  total: Int32Array;
  reserved: Int32Array;
  allocationRatio: Float64Array;
  minUnit: Int32Array;
  /** 0 where the provider has no inventory of the class. */
  maxUnit: Int32Array;
  stepSize: Int32Array;
  /** How many inventories have a min_unit or step_size other than 1. When it is 0, a search need not check either. */
  unevenCount = 0;
  /** Number of providers that have an inventory of the class. */
  count = 0;
  /** A lower bound of every max_unit, which never rises. A search for less need not check the max_unit. */
  maxUnitAtLeast = Number.POSITIVE_INFINITY;
  /** Use that the ledger does not show yet, by slot. */
  readonly #reservedByClaims = new Map<number, number>();

  constructor(slots: number) {
    this.free = new Float64Array(slots).fill(-1);
    this.used = new Float64Array(slots);
    this.total = new Int32Array(slots);
    this.reserved = new Int32Array(slots);
    this.allocationRatio = new Float64Array(slots);
    this.minUnit = new Int32Array(slots);
    this.maxUnit = new Int32Array(slots);
    this.stepSize = new Int32Array(slots);
  }

  grow(slots: number): void {
    const old = this.free.length;
    this.free = copyInto(new Float64Array(slots), this.free).fill(-1, old);
    this.used = copyInto(new Float64Array(slots), this.used);
    this.total = copyInto(new Int32Array(slots), this.total);
    this.reserved = copyInto(new Int32Array(slots), this.reserved);
    this.allocationRatio = copyInto(new Float64Array(slots), this.allocationRatio);
    this.minUnit = copyInto(new Int32Array(slots), this.minUnit);
    this.maxUnit = copyInto(new Int32Array(slots), this.maxUnit);
    this.stepSize = copyInto(new Int32Array(slots), this.stepSize);
  }

  has(slot: number): boolean {
    return this.maxUnit[slot]! > 0;
  }

  /** The most that may be allocated, including what is in use. */
  capacity(slot: number): number {
    const reserved = this.#reservedByClaims.size === 0 ? 0 : (this.#reservedByClaims.get(slot) ?? 0);
    return this.free[slot]! + this.used[slot]! + reserved;
  }

  /** Returns whether the provider had no inventory of the class before. */
  put(slot: number, inventory: Inventory, used: number): boolean {
    const added = !this.has(slot);
    if (!added && this.#isUneven(slot)) this.unevenCount -= 1;
    this.free[slot] = capacityOf(inventory) - used - (this.#reservedByClaims.get(slot) ?? 0);
    this.used[slot] = used;
    this.total[slot] = inventory.total;
    this.reserved[slot] = inventory.reserved;
    this.allocationRatio[slot] = inventory.allocationRatio;
    this.minUnit[slot] = inventory.minUnit;
    this.maxUnit[slot] = inventory.maxUnit;
    this.stepSize[slot] = inventory.stepSize;
    if (added) this.count += 1;
    if (inventory.maxUnit < this.maxUnitAtLeast) this.maxUnitAtLeast = inventory.maxUnit;
    if (this.#isUneven(slot)) this.unevenCount += 1;
    return added;
  }

  /** Returns whether there was something to remove. */
  remove(slot: number): boolean {
    if (!this.has(slot)) return false;
    if (this.#isUneven(slot)) this.unevenCount -= 1;
    this.free[slot] = -1;
    this.used[slot] = 0;
    this.maxUnit[slot] = 0;
    this.count -= 1;
    return true;
  }

  /** Counts an amount as used in addition to the ledger's use. A negative amount reverts this. */
  reserve(slot: number, amount: number): void {
    const reserved = (this.#reservedByClaims.get(slot) ?? 0) + amount;
    if (reserved === 0) this.#reservedByClaims.delete(slot);
    else this.#reservedByClaims.set(slot, reserved);
    if (this.has(slot)) this.free[slot] = this.free[slot]! - amount;
  }

  /**
   * Lowers the free amount to what the ledger itself has reported to a refused claim. It holds until the inventory is put again. Returns
   * whether anything changed.
   */
  learnFree(slot: number, free: number): boolean {
    const excess = this.free[slot]! - free;
    if (!this.has(slot) || excess <= 0) return false;
    this.free[slot] = free;
    this.used[slot] = this.used[slot]! + excess;
    return true;
  }

  /** The inventory of a provider, or undefined. */
  at(slot: number): (Inventory & { readonly used: number }) | undefined {
    if (!this.has(slot)) return undefined;
    return {
      total: this.total[slot]!,
      reserved: this.reserved[slot]!,
      minUnit: this.minUnit[slot]!,
      maxUnit: this.maxUnit[slot]!,
      stepSize: this.stepSize[slot]!,
      allocationRatio: this.allocationRatio[slot]!,
      used: this.used[slot]!,
    };
  }

  get memoryBytes(): number {
    return this.free.length * (3 * 8 + 5 * 4);
  }

  #isUneven(slot: number): boolean {
    return this.minUnit[slot] !== 1 || this.stepSize[slot] !== 1;
  }
}

/** Copies `source` to the start of `target`, and returns `target`. */
export function copyInto<Array extends { set(source: Array): void }>(target: Array, source: Array): Array {
  target.set(source);
  return target;
}
