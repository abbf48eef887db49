/**
 * Gathers the items that are added within one turn of the event loop and hands them over together at its end, so that many small messages
 * share one frame.
 */
export class TurnQueue<Item> {
  #items: Item[] = [];
  readonly #flush: (items: Item[]) => void;

  constructor(flush: (items: Item[]) => void) {
    this.#flush = flush;
  }

  add(item: Item): void {
    if (this.#items.push(item) > 1) return;
    setImmediate(() => {
      const items = this.#items;
      this.#items = [];
      if (items.length > 0) this.#flush(items);
    });
  }

  /** Drops the items that were added in this turn. */
  clear(): void {
    this.#items = [];
  }
}
