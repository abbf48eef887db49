import type { ProviderUuid } from "./ids.ts";
import { copyInto } from "./inventory-column.ts";
import { NamedSets } from "./named-sets.ts";

const NO_SLOTS: readonly number[] = [];

/**
 * The providers of a ledger view: the slot of each in the arrays, and the links of their trees.
 *
 * A slot is taken when a row mentions a provider, even before the provider's own row, because a child may arrive before its parent and an
 * inventory before its provider. The slot is free again once the provider is removed and nothing refers to it.
 */
export class ProviderSlots {
  /** Slot of the parent, or -1 for a root or an unknown parent. */
  parent = new Int32Array(0);
  /** Slot of the root. A root has its own slot here. */
  root = new Int32Array(0);
  /** Trait set and aggregate set of each provider, as numbers of the view's NamedSets. */
  traitSet = new Int32Array(0);
  aggregateSet = new Int32Array(0);
  /** The slots of all roots. Only the first `rootCount` entries are valid. */
  roots = new Int32Array(0);
  rootCount = 0;
  /** Number of providers that are known and not merely mentioned. */
  knownCount = 0;

  readonly #slotOf = new Map<ProviderUuid, number>();
  readonly #uuids: (ProviderUuid | undefined)[] = [];
  readonly #names: string[] = [];
  readonly #freeSlots: number[] = [];
  readonly #descendants: (number[] | undefined)[] = [];
  #generation = new Int32Array(0);
  #known = new Uint8Array(0);
  /** How many inventories, children, trees and hosts refer to each slot. */
  #references = new Int32Array(0);
  #rootPosition = new Int32Array(0);

  get capacity(): number {
    return this.parent.length;
  }

  /** The slot of a provider that is known, or -1. */
  find(uuid: ProviderUuid): number {
    const slot = this.#slotOf.get(uuid);
    return slot !== undefined && this.#known[slot] === 1 ? slot : -1;
  }

  /** The slot of a provider that is known or was mentioned, or -1. */
  findMentioned(uuid: ProviderUuid): number {
    return this.#slotOf.get(uuid) ?? -1;
  }

  /** The slot of a provider. A slot is taken if nothing mentioned the provider before. */
  take(uuid: ProviderUuid): number {
    const known = this.#slotOf.get(uuid);
    if (known !== undefined) return known;
    const slot = this.#freeSlots.pop() ?? this.#uuids.length;
    if (slot >= this.capacity) this.#grow(Math.max(64, this.capacity * 2));
    this.#uuids[slot] = uuid;
    this.#names[slot] = "";
    // The array must have no holes, because reading beyond the end of an array is slow.
    if (slot === this.#descendants.length) this.#descendants.push(undefined);
    this.#slotOf.set(uuid, slot);
    this.parent[slot] = -1;
    this.root[slot] = slot;
    this.traitSet[slot] = NamedSets.EMPTY;
    this.aggregateSet[slot] = NamedSets.EMPTY;
    return slot;
  }

  isKnown(slot: number): boolean {
    return this.#known[slot] === 1;
  }

  uuid(slot: number): ProviderUuid {
    return this.#uuids[slot]!;
  }

  nameOf(slot: number): string {
    return this.#names[slot]!;
  }

  generation(slot: number): number {
    return this.#generation[slot]!;
  }

  /** The known providers of a root's tree, except the root itself. Empty for a flat host. */
  descendants(root: number): readonly number[] {
    return this.#descendants[root] ?? NO_SLOTS;
  }

  put(
    slot: number,
    values: { readonly name: string; readonly generation: number; readonly parent: number; readonly root: number },
  ): void {
    const moved = this.#known[slot] === 0 || this.parent[slot] !== values.parent || this.root[slot] !== values.root;
    this.#names[slot] = values.name;
    this.#generation[slot] = values.generation;
    if (!moved) return;
    const before = this.#known[slot] === 1 ? this.#unlink(slot) : NO_SLOTS;
    this.#link(slot, values.parent, values.root);
    for (const slotBefore of before) this.drop(slotBefore);
  }

  /** Removes the provider. Its slot is free once nothing refers to it. */
  forget(slot: number): void {
    const before = this.#known[slot] === 1 ? this.#unlink(slot) : NO_SLOTS;
    for (const slotBefore of before) this.drop(slotBefore);
    this.freeIfUnused(slot);
  }

  refer(slot: number): void {
    this.#references[slot] = this.#references[slot]! + 1;
  }

  drop(slot: number): void {
    this.#references[slot] = this.#references[slot]! - 1;
    this.freeIfUnused(slot);
  }

  /** Frees a slot that was only mentioned, when nothing refers to it. */
  freeIfUnused(slot: number): void {
    const uuid = this.#uuids[slot];
    if (uuid === undefined || this.#known[slot] === 1 || this.#references[slot]! > 0) return;
    if (this.traitSet[slot] !== NamedSets.EMPTY || this.aggregateSet[slot] !== NamedSets.EMPTY) return;
    this.#slotOf.delete(uuid);
    this.#uuids[slot] = undefined;
    this.#freeSlots.push(slot);
  }

  get memoryBytes(): number {
    return this.capacity * (8 * 4 + 1) + this.#uuids.length * (36 + 16 + 60 + 24 + 16);
  }

  #link(slot: number, parent: number, root: number): void {
    this.#known[slot] = 1;
    this.knownCount += 1;
    this.parent[slot] = parent;
    this.root[slot] = root;
    if (parent >= 0) this.refer(parent);
    if (root === slot) {
      this.#rootPosition[slot] = this.rootCount;
      this.roots[this.rootCount] = slot;
      this.rootCount += 1;
      return;
    }
    this.refer(root);
    const tree = this.#descendants[root];
    if (tree) tree.push(slot);
    else this.#descendants[root] = [slot];
  }

  /** Reverts `#link`, but returns the referenced slots instead of dropping them. The caller must drop them. */
  #unlink(slot: number): readonly number[] {
    this.#known[slot] = 0;
    this.knownCount -= 1;
    const referred: number[] = [];
    const parent = this.parent[slot]!;
    const root = this.root[slot]!;
    if (parent >= 0) referred.push(parent);
    if (root === slot) {
      this.#removeRoot(slot);
    } else {
      referred.push(root);
      const tree = this.#descendants[root]!;
      tree.splice(tree.indexOf(slot), 1);
      if (tree.length === 0) this.#descendants[root] = undefined;
    }
    this.parent[slot] = -1;
    this.root[slot] = slot;
    return referred;
  }

  #removeRoot(slot: number): void {
    this.rootCount -= 1;
    const last = this.roots[this.rootCount]!;
    const position = this.#rootPosition[slot]!;
    this.roots[position] = last;
    this.#rootPosition[last] = position;
  }

  #grow(slots: number): void {
    this.parent = copyInto(new Int32Array(slots), this.parent);
    this.root = copyInto(new Int32Array(slots), this.root);
    this.traitSet = copyInto(new Int32Array(slots), this.traitSet);
    this.aggregateSet = copyInto(new Int32Array(slots), this.aggregateSet);
    this.roots = copyInto(new Int32Array(slots), this.roots);
    this.#generation = copyInto(new Int32Array(slots), this.#generation);
    this.#known = copyInto(new Uint8Array(slots), this.#known);
    this.#references = copyInto(new Int32Array(slots), this.#references);
    this.#rootPosition = copyInto(new Int32Array(slots), this.#rootPosition);
  }
}
