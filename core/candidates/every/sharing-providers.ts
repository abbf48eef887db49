import { type AggregateUuid, trait } from "../../ledger/ids.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { NamedSets } from "../../ledger/named-sets.ts";

const SHARES = trait("MISC_SHARES_VIA_AGGREGATE");

/**
 * The providers that share their inventory with every tree with which they have an aggregate in common (shared storage, a pool of
 * addresses), and the trees that each of them serves.
 */
export class SharingProviders {
  /** Slots of all sharing providers. */
  readonly slots: readonly number[];
  readonly #view: LedgerView;
  /** By pair of aggregate sets: whether the two have a member in common. */
  readonly #meets = new Map<number, boolean>();

  constructor(view: LedgerView) {
    this.#view = view;
    this.slots = findSharing(view);
  }

  isSharing(slot: number): boolean {
    return this.slots.includes(slot);
  }

  /** Sharing providers of other trees that serve the tree of this root. */
  servingTree(root: number, tree: readonly number[]): readonly number[] {
    if (this.slots.length === 0) return this.slots;
    const { slots } = this.#view;
    return this.slots.filter((slot) => slots.root[slot] !== root && tree.some((member) => this.#meet(slot, member)));
  }

  #meet(a: number, b: number): boolean {
    const { aggregateSet } = this.#view.slots;
    const [one, other] = [aggregateSet[a]!, aggregateSet[b]!];
    const key = one * 2 ** 26 + other;
    let known = this.#meets.get(key);
    if (known === undefined) {
      known = overlap(this.#view.aggregates, one, other);
      this.#meets.set(key, known);
    }
    return known;
  }
}

function overlap(sets: Readonly<NamedSets<AggregateUuid>>, one: number, other: number): boolean {
  const names = new Set(sets.names(one));
  return sets.names(other).some((name) => names.has(name));
}

function findSharing(view: LedgerView): readonly number[] {
  const id = view.traits.idOf(SHARES);
  if (id < 0) return [];
  const { slots, traits } = view;
  const shares = Array.from({ length: traits.count }, (_, set) => traits.has(set, id));
  const found: number[] = [];
  for (let slot = 0; slot < slots.capacity; slot += 1) {
    if (shares[slots.traitSet[slot]!] && slots.isKnown(slot)) found.push(slot);
  }
  return found;
}
