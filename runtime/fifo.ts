/**
 * A queue with cheap removal at the front. Cost: amortized O(1) an item; the spent part of the array is dropped when it outgrows the rest.
 */
export class Fifo<Item> {
  #items: Item[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  peek(): Item | undefined {
    return this.#items[this.#head];
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  shift(): Item | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    // Drops the reference to the item before the array is compacted.
    this.#items[this.#head] = undefined as Item;
    this.#head += 1;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }

  *[Symbol.iterator](): IterableIterator<Item> {
    for (let index = this.#head; index < this.#items.length; index += 1) yield this.#items[index] as Item;
  }
}
