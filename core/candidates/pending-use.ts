import type { ResourceClass } from "../ledger/ids.ts";
import type { AllocationItem } from "../ledger/model.ts";
import type { LedgerView } from "../ledger/view.ts";

/**
 * Use that a ledger view does not show yet: claims on their way to the database, or committed and not yet replicated. They
 * are held in the view, so that a search sees them as used at no cost. One of these a view.
 */
export class PendingUse {
  readonly #view: LedgerView;
  readonly #claims = new Map<string, { readonly items: readonly AllocationItem[]; held: readonly Held[] }>();
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
    this.#claims.set(id, { items, held: this.#hold(items) });
  }

  /** The view shows the claim, or it came to nothing. */
  settle(id: string): void {
    this.follow();
    const claim = this.#claims.get(id);
    if (!claim) return;
    this.#claims.delete(id);
    for (const { slot, resourceClass, amount } of claim.held) this.#view.hold(slot, resourceClass, -amount);
  }

  /** Hold all claims anew if the view's slots have come to mean other providers. Searches call it first. */
  follow(): void {
    if (this.#layout === this.#view.layout) return;
    this.#layout = this.#view.layout;
    this.#view.holdNothing();
    for (const claim of this.#claims.values()) claim.held = this.#hold(claim.items);
  }

  /** Returns what was held: not what is of providers that the view does not know. */
  #hold(items: readonly AllocationItem[]): Held[] {
    const held: Held[] = [];
    for (const { provider, resourceClass, amount } of items) {
      const slot = this.#view.slots.find(provider);
      if (slot < 0 || !this.#view.column(resourceClass)) continue;
      this.#view.hold(slot, resourceClass, amount);
      held.push({ slot, resourceClass, amount });
    }
    return held;
  }
}

interface Held {
  readonly slot: number;
  readonly resourceClass: ResourceClass;
  readonly amount: number;
}
