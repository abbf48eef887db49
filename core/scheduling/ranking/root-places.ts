/**
 * Numbers the roots of a view in the order in which rankings first see them. Arrays by place are small and dense, because they have no
 * entries for the other providers of the trees, which may be many times as many. A slot keeps its place while the view's slots stay the
 * same.
 */
export class RootPlaces {
  /** By slot: its place plus one, or 0 when it has none. */
  #ordinals = new Int32Array(0);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** The place of a root, or -1 when it has none. */
  find(root: number): number {
    return root < this.#ordinals.length ? this.#ordinals[root]! - 1 : -1;
  }

  /** Gives a place to each of the first `count` roots that has none. `slots` must be greater than any root's slot. */
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
