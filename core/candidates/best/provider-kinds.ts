import { type BoundGroup, type BoundRequest, mayServeNumbered, mayServeUnnumbered } from "../bound/bound-request.ts";
import { hasRoom } from "../bound/requested-amount.ts";
import { hasGroupRules } from "./group-rules.ts";

/**
 * The providers of one tree that can serve some part of a request, with equivalent ones next to each other. Two are alike when nothing that a
 * request can name distinguishes them: parent, traits, aggregates, and for the requested classes room and units. Tight kinds come first, so
 * that the first results leave the roomiest providers whole.
 *
 * It is filled for one tree after the other. The arrays grow to the size of the largest tree and are reused; only their first `count` rows
 * are valid.
 */
export class ProviderKinds {
  count = 0;
  /** By provider: its slot in the view. */
  slots = new Int32Array(0);
  /** By provider: the number of its kind, in ascending order. */
  kind = new Int32Array(0);
  /** Room by provider and class of the request: the free amount, but at most max_unit. Rows are providers. */
  room = new Float64Array(0);
  /** By provider and group: 1 if the provider alone could serve one of the group's members. Rows are providers. */
  groupFits = new Uint8Array(0);
  /** By provider and class of the unnumbered group: 1 if the provider could serve it. Rows are providers. */
  amountFits = new Uint8Array(0);
  readonly #request: BoundRequest;
  readonly #amountCount: number;
  readonly #hasRules: boolean;
  /** The usable providers in the order of the tree: slot, room of all requested classes added up, and kind. */
  #found = new Int32Array(0);
  #roomOfFound = new Float64Array(0);
  #kindOfFound = new Int32Array(0);
  /** By kind, in the order of discovery: its first provider, and how many providers are like it. */
  #first = new Int32Array(0);
  #countOfKind = new Int32Array(0);
  /** Kinds with the tightest first, and by kind its place in that order and the position of its next provider. */
  #order = new Int32Array(0);
  #place = new Int32Array(0);
  #next = new Int32Array(0);

  constructor(request: BoundRequest) {
    this.#request = request;
    this.#amountCount = request.unnumbered?.amounts.length ?? 0;
    this.#hasRules = hasGroupRules(request.request);
  }

  /** Finds and sorts the providers of the root's tree. Cost: (providers of the tree) × (classes + groups + kinds). */
  fill(root: number): void {
    const descendants = this.#request.view.slots.descendants(root);
    this.#reserve(descendants.length + 1);
    this.count = 0;
    this.#find(root);
    for (const slot of descendants) this.#find(slot);
    this.#sortTightFirst(this.#gatherKinds());
    for (let index = 0; index < this.count; index += 1) {
      const kind = this.#kindOfFound[index]!;
      const provider = this.#next[kind]!;
      this.#next[kind] = provider + 1;
      this.#put(provider, this.#found[index]!, this.#place[kind]!);
    }
  }

  /** Notes the provider if it is usable. */
  #find(slot: number): void {
    if (!this.#isUsable(slot)) return;
    const { classes } = this.#request;
    let room = 0;
    for (let index = 0; index < classes.length; index += 1) room += Math.max(0, classes[index]!.column.free[slot]!);
    this.#found[this.count] = slot;
    this.#roomOfFound[this.count] = room;
    this.count += 1;
  }

  #isUsable(slot: number): boolean {
    const { view, unnumbered, numbered } = this.#request;
    if (unnumbered !== null && mayServeUnnumbered(view, unnumbered, slot)) {
      for (const requested of unnumbered.amounts) if (hasRoom(requested, slot)) return true;
    }
    for (const group of numbered) if (this.#couldServe(group, slot)) return true;
    return false;
  }

  #couldServe(group: BoundGroup, slot: number): boolean {
    for (const requested of group.amounts) if (!hasRoom(requested, slot)) return false;
    return mayServeNumbered(this.#request.view, group, slot);
  }

  /** Gives each provider found the number of its kind, and returns how many kinds there are. */
  #gatherKinds(): number {
    let kinds = 0;
    for (let index = 0; index < this.count; index += 1) {
      let kind = 0;
      while (kind < kinds && !this.#isOfKind(kind, index)) kind += 1;
      this.#kindOfFound[index] = kind;
      if (kind < kinds) {
        this.#countOfKind[kind] = this.#countOfKind[kind]! + 1;
        continue;
      }
      this.#first[kind] = index;
      this.#countOfKind[kind] = 1;
      kinds += 1;
    }
    return kinds;
  }

  #isOfKind(kind: number, index: number): boolean {
    const first = this.#first[kind]!;
    // Providers that differ usually differ in this sum, so one comparison often replaces several.
    if (this.#roomOfFound[first] !== this.#roomOfFound[index]) return false;
    return this.#areEquivalent(this.#found[first]!, this.#found[index]!);
  }

  #areEquivalent(a: number, b: number): boolean {
    const { slots } = this.#request.view;
    if (slots.parent[a] !== slots.parent[b] || slots.traitSet[a] !== slots.traitSet[b]) return false;
    if (slots.aggregateSet[a] !== slots.aggregateSet[b]) return false;
    // Rules between groups depend on a provider's descendants, so under such rules a provider that has children is like no other.
    if (this.#hasRules && (this.#isAbove(a) || this.#isAbove(b))) return false;
    for (const { column } of this.#request.classes) {
      if (column.free[a] !== column.free[b] || column.maxUnit[a] !== column.maxUnit[b]) return false;
      if (column.minUnit[a] !== column.minUnit[b] || column.stepSize[a] !== column.stepSize[b]) return false;
    }
    return true;
  }

  #isAbove(slot: number): boolean {
    const { slots } = this.#request.view;
    return slots.descendants(slots.root[slot]!).some((other) => slots.parent[other] === slot);
  }

  /** Sorts the kinds by room. Kinds with equal room keep their order. */
  #sortTightFirst(kinds: number): void {
    for (let kind = 0; kind < kinds; kind += 1) {
      const room = this.#roomOfFound[this.#first[kind]!]!;
      let place = kind;
      while (place > 0 && this.#roomOfFound[this.#first[this.#order[place - 1]!]!]! > room) {
        this.#order[place] = this.#order[place - 1]!;
        place -= 1;
      }
      this.#order[place] = kind;
    }
    let next = 0;
    for (let place = 0; place < kinds; place += 1) {
      const kind = this.#order[place]!;
      this.#place[kind] = place;
      this.#next[kind] = next;
      next += this.#countOfKind[kind]!;
    }
  }

  #put(provider: number, slot: number, kind: number): void {
    const { view, classes, unnumbered, numbered } = this.#request;
    this.slots[provider] = slot;
    this.kind[provider] = kind;
    for (let index = 0; index < classes.length; index += 1) {
      const { free, maxUnit } = classes[index]!.column;
      this.room[provider * classes.length + index] = Math.max(0, Math.min(free[slot]!, maxUnit[slot]!));
    }
    for (let index = 0; index < numbered.length; index += 1) {
      this.groupFits[provider * numbered.length + index] = this.#couldServe(numbered[index]!, slot) ? 1 : 0;
    }
    if (unnumbered === null) return;
    const mayServe = mayServeUnnumbered(view, unnumbered, slot);
    for (let index = 0; index < this.#amountCount; index += 1) {
      const fits = mayServe && hasRoom(unnumbered.amounts[index]!, slot);
      this.amountFits[provider * this.#amountCount + index] = fits ? 1 : 0;
    }
  }

  #reserve(providers: number): void {
    if (providers <= this.slots.length) return;
    const { classes, numbered } = this.#request;
    this.slots = new Int32Array(providers);
    this.kind = new Int32Array(providers);
    this.room = new Float64Array(providers * classes.length);
    this.groupFits = new Uint8Array(providers * numbered.length);
    this.amountFits = new Uint8Array(providers * this.#amountCount);
    this.#found = new Int32Array(providers);
    this.#roomOfFound = new Float64Array(providers);
    this.#kindOfFound = new Int32Array(providers);
    this.#first = new Int32Array(providers);
    this.#countOfKind = new Int32Array(providers);
    this.#order = new Int32Array(providers);
    this.#place = new Int32Array(providers);
    this.#next = new Int32Array(providers);
  }
}
