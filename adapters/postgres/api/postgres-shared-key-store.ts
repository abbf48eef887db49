import { randomBytes } from "node:crypto";
import type { Pool } from "pg";
import { assert } from "../../../core/assert.ts";
import type { SharedKeyStore } from "../../../core/stores/api/shared-key-store.ts";
import { queryStored } from "../client/store-query.ts";

const KEY_BYTES = 32;

/** Shared keys in the API database. Throws `StoreError`. */
export class PostgresSharedKeyStore implements SharedKeyStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async key(name: string): Promise<Uint8Array> {
    const found = await this.#read(name);
    if (found !== null) return found;
    await queryStored(this.#pool, {
      name: "make_shared_key",
      text: "insert into shared_keys (name, key) values ($1, $2) on conflict (name) do nothing",
      values: [name, randomBytes(KEY_BYTES)],
    });
    // Another process may have been faster, so its key counts. A statement does not see the row that made its own insertion do nothing.
    const made = await this.#read(name);
    assert(made !== null, "a key that was made is never removed");
    return made;
  }

  async #read(name: string): Promise<Uint8Array | null> {
    const [row] = await queryStored<{ key: Buffer }>(this.#pool, {
      name: "shared_key",
      text: "select key from shared_keys where name = $1",
      values: [name],
    });
    return row === undefined ? null : Uint8Array.from(row.key);
  }
}
