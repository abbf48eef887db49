import { capacityOf, type Inventory } from "./model.ts";

/**
 * One resource class of a ledger view: the inventories of all providers as arrays by slot. The arrays are replaced when
 * they grow: fetch them anew for each search.
 */
export class InventoryColumn {
  /**
   * capacity − used − held; -1 where the provider has no inventory of the class. Below 0 after a capacity was lowered under
   * its use.
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
  /** Inventories whose min_unit or step_size is not 1. None: a search need not look at either. */
  unevenCount = 0;
  /** Providers that have an inventory of the class. */
  count = 0;
  /** No inventory has a smaller max_unit (a bound that only falls): a search for less need not look at them. */
  maxUnitAtLeast = Number.POSITIVE_INFINITY;
  /** By slot: use that the ledger does not show yet. */
  readonly #held = new Map<number, number>();

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

  /** What may be allocated at most, in use or not. */
  capacity(slot: number): number {
    const held = this.#held.size === 0 ? 0 : (this.#held.get(slot) ?? 0);
    return this.free[slot]! + this.used[slot]! + held;
  }

  /** Returns whether the provider had no inventory of the class before. */
  put(slot: number, inventory: Inventory, used: number): boolean {
    const added = !this.has(slot);
    if (!added && this.#isUneven(slot)) this.unevenCount -= 1;
    this.free[slot] = capacityOf(inventory) - used - (this.#held.get(slot) ?? 0);
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

  /** Count so much as used beside what the ledger says; a negative amount takes it back. */
  hold(slot: number, amount: number): void {
    const held = (this.#held.get(slot) ?? 0) + amount;
    if (held === 0) this.#held.delete(slot);
    else this.#held.set(slot, held);
    if (this.has(slot)) this.free[slot] = this.free[slot]! - amount;
  }

  /** Somebody who asked the ledger itself was told that no more is free: it stands until the inventory is put again. */
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

/** Returns `target` with `source` at its start. */
export function copyInto<Array extends { set(source: Array): void }>(target: Array, source: Array): Array {
  target.set(source);
  return target;
}
