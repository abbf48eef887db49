/**
 * Numbers the roots of a view in the order in which rankings meet them. What a ranking keeps of each host then takes no room for the other
 * providers of the trees, which may be many times as many, and lies together. A slot has its place as long as the view's
 * slots are these.
 */
export class RootPlaces {
  /** By slot; 0: none yet. One more than the place. */
  #ordinals = new Int32Array(0);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** The place of a root, -1 when nobody has taken it. */
  find(root: number): number {
    return root < this.#ordinals.length ? this.#ordinals[root]! - 1 : -1;
  }

  /** The place of each of the first `count` roots is taken. `slots`: more than any root's slot. */
  take(roots: Int32Array, count: number, slots: number): void {
    if (this.#ordinals.length < slots) this.#grow(slots);
    for (let index = 0; index < count; index += 1) {
      const root = roots[index]!;
      if (this.#ordinals[root] !== 0) continue;
      this.#count += 1;
      this.#ordinals[root] = this.#count;
    }
  }

  #grow(slots: number): void {
    const ordinals = new Int32Array(slots);
    ordinals.set(this.#ordinals);
    this.#ordinals = ordinals;
  }
}
