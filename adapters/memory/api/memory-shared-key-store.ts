import { randomBytes } from "node:crypto";
import type { SharedKeyStore } from "../../../core/stores/api/shared-key-store.ts";

/** The in-process twin of the table of shared keys. */
export class MemorySharedKeyStore implements SharedKeyStore {
  readonly #keys = new Map<string, Uint8Array>();

  async key(name: string): Promise<Uint8Array> {
    const key = this.#keys.get(name) ?? randomBytes(32);
    this.#keys.set(name, key);
    return Uint8Array.from(key);
  }
}
