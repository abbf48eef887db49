/** Distinct values, numbered from 1 in the order of their first appearance, as SQL's arrays count. */
export class Interned<Value> {
  readonly #indexes = new Map<Value, number>();

  constructor(values: readonly Value[] = []) {
    for (const value of values) this.indexOf(value);
  }

  /** The number of the value. A new value gets the next number. */
  indexOf(value: Value): number {
    let index = this.#indexes.get(value);
    if (index === undefined) {
      index = this.#indexes.size + 1;
      this.#indexes.set(value, index);
    }
    return index;
  }

  get values(): readonly Value[] {
    return [...this.#indexes.keys()];
  }
}
