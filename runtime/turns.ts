/** Runs work that shares a key one after the other, in the order of the calls, and all other work at once. */
export class Turns<Key> {
  readonly #last = new Map<Key, Promise<unknown>>();

  take<Result>(keys: Iterable<Key>, work: () => Promise<Result>): Promise<Result> {
    const named = [...keys];
    const before = named.map((key) => this.#last.get(key)).filter((turn) => turn !== undefined);
    const turn = before.length === 0 ? work() : Promise.allSettled(before).then(work);
    // Never rejects, so that the next work only waits for this one.
    const forget = (): void => this.#forget(named, over);
    const over: Promise<void> = turn.then(forget, forget);
    for (const key of named) this.#last.set(key, over);
    return turn;
  }

  /** Number of keys with running or waiting work. */
  get size(): number {
    return this.#last.size;
  }

  #forget(keys: readonly Key[], turn: Promise<unknown>): void {
    for (const key of keys) if (this.#last.get(key) === turn) this.#last.delete(key);
  }
}
