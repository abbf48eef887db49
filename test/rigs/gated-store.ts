import type { ConductorStore } from "../../services/conductor/ports.ts";

/** A store whose calls can be held before they begin. It can also die, and then no call ever returns. */
export class GatedStore {
  readonly store: ConductorStore;
  readonly #gates = new Map<string, Promise<void>>();
  readonly #held = new Map<string, number>();
  readonly #changes = new Map<string, (answer: unknown) => unknown>();
  #dead = false;

  constructor(target: ConductorStore) {
    const call = async (name: string, run: () => Promise<unknown>): Promise<unknown> => {
      const gate = this.#gates.get(name);
      if (gate !== undefined) {
        this.#held.set(name, (this.#held.get(name) ?? 0) + 1);
        await gate;
      }
      if (this.#dead) return new Promise(() => {});
      const answer = await run();
      return this.#changes.get(name)?.(answer) ?? answer;
    };
    this.store = new Proxy(target, {
      get:
        (store, name: keyof ConductorStore) =>
        (...args: unknown[]) =>
          call(name, () => (store[name] as (...args: unknown[]) => Promise<unknown>).apply(store, args)),
    });
  }

  /** Holds calls of `name` until the returned function is called. */
  hold(name: keyof ConductorStore): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gates.set(name, promise);
    return () => {
      this.#gates.delete(name);
      resolve();
    };
  }

  /** From now on the answers of `name` are passed through `change`. */
  change(name: keyof ConductorStore, change: (answer: unknown) => unknown): void {
    this.#changes.set(name, change);
  }

  /** How many calls of `name` were held so far. */
  held(name: keyof ConductorStore): number {
    return this.#held.get(name) ?? 0;
  }

  die(): void {
    this.#dead = true;
  }
}
