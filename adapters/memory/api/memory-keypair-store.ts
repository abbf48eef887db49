import { compare } from "../../../core/ledger/ledger-state.ts";
import type { KeypairQuery, KeypairRecord, KeypairStore, NewKeypair } from "../../../core/stores/api/keypair-store.ts";

/** The in-process twin of the keypairs' table. */
export class MemoryKeypairStore implements KeypairStore {
  /** By user, then by name. */
  readonly #users = new Map<string, Map<string, KeypairRecord>>();
  #lastId = 0;

  async createKeypair(keypair: NewKeypair, keypairsMax: number | null): Promise<"created" | "name-taken" | "too-many"> {
    const own = this.#users.get(keypair.userId) ?? new Map<string, KeypairRecord>();
    if (keypairsMax !== null && own.size >= keypairsMax) return "too-many";
    if (own.has(keypair.name)) return "name-taken";
    this.#lastId += 1;
    own.set(keypair.name, { ...keypair, id: this.#lastId });
    this.#users.set(keypair.userId, own);
    return "created";
  }

  async keypair(userId: string, name: string): Promise<KeypairRecord | null> {
    return this.#users.get(userId)?.get(name) ?? null;
  }

  async keypairs({ userId, marker, limit }: KeypairQuery): Promise<readonly KeypairRecord[] | null> {
    const own = this.#users.get(userId);
    if (marker !== null && !own?.has(marker)) return null;
    return [...(own?.values() ?? [])]
      .filter(({ name }) => marker === null || compare(name, marker) > 0)
      .sort((a, b) => compare(a.name, b.name))
      .slice(0, limit);
  }

  async deleteKeypair(userId: string, name: string): Promise<boolean> {
    return this.#users.get(userId)?.delete(name) ?? false;
  }
}
