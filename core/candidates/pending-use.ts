import type { ResourceClass } from "../ledger/ids.ts";
import type { AllocationItem } from "../ledger/model.ts";
import type { LedgerView } from "../ledger/view.ts";

let zeros = new Float64Array(1024);

/** Zeros for at least so many slots. Read only. */
export function noPendingUse(slots: number): Float64Array {
  if (zeros.length < slots) zeros = new Float64Array(slots * 2);
  return zeros;
}

/**
 * Use that a ledger view does not show yet: claims on their way to the database, or committed and not yet replicated. A
 * search counts it as used.
 */
export class PendingUse {
  readonly #view: LedgerView;
  readonly #claims = new Map<string, readonly AllocationItem[]>();
  #arrays = new Map<ResourceClass, Float64Array>();
  #layout: number;

  constructor(view: LedgerView) {
    this.#view = view;
    this.#layout = view.layout;
  }

  /** Claims that count now. */
  get count(): number {
    return this.#claims.size;
  }

  has(id: string): boolean {
    return this.#claims.has(id);
  }

  /** Count these until `settle` of the same id; replaces what the id stood for before. */
  add(id: string, items: readonly AllocationItem[]): void {
    this.settle(id);
    this.#claims.set(id, items);
    this.#follow();
    this.#count(items, 1);
  }

  /** The view shows the claim, or it came to nothing. */
  settle(id: string): void {
    const items = this.#claims.get(id);
    if (!items) return;
    this.#follow();
    this.#claims.delete(id);
    this.#count(items, -1);
  }

  /** Pending amounts by slot of the view as it is now. */
  amounts(resourceClass: ResourceClass): Float64Array {
    this.#follow();
    return this.#arrays.get(resourceClass) ?? noPendingUse(this.#view.slots.capacity);
  }

  /** Slots may have come to mean other providers, or have become more. */
  #follow(): void {
    const slots = this.#view.slots.capacity;
    if (this.#layout !== this.#view.layout) {
      this.#layout = this.#view.layout;
      this.#arrays = new Map();
      for (const items of this.#claims.values()) this.#count(items, 1);
      return;
    }
    for (const [resourceClass, array] of this.#arrays) {
      if (array.length >= slots) continue;
      const grown = new Float64Array(slots);
      grown.set(array);
      this.#arrays.set(resourceClass, grown);
    }
  }

  #count(items: readonly AllocationItem[], sign: 1 | -1): void {
    for (const { provider, resourceClass, amount } of items) {
      const slot = this.#view.slots.find(provider);
      if (slot < 0) continue;
      let array = this.#arrays.get(resourceClass);
      if (!array) {
        array = new Float64Array(this.#view.slots.capacity);
        this.#arrays.set(resourceClass, array);
      }
      array[slot] = array[slot]! + sign * amount;
    }
  }
}
