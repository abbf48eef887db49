import type { Pool } from "pg";
import type { ValuesQuery } from "../../../core/stores/cell/listed-servers.ts";
import { queryStored } from "../client/store-query.ts";
import { INDEXED_BYTES_MAX, KEY_NAME } from "./indexed-attributes.ts";

const PRESENT = `deleted_at is null and ${KEY_NAME} is not null`;
/** Sorts before all names. */
const BEFORE_ALL = Buffer.alloc(0);
/** Sorts after all names that the index has. */
const AFTER_ALL = Buffer.alloc(INDEXED_BYTES_MAX + 1, 255);

interface NameRow {
  readonly value: Buffer;
  readonly is_new: boolean;
}

/**
 * Finds the names of key pairs that a cell's servers have. To read a name, Postgres must decode a spec, so the names that were found are remembered. The next question only
 * looks whether the index has others between two of them, and whether the ones that it asks for are still there, and decodes those that are new. So its answer is as exact as
 * the first one.
 */
export class KeyNames {
  readonly #pool: Pool;
  /** In the order of the index. Servers may no longer have some of them. */
  #remembered: readonly Buffer[] = [];

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Returns the names that contain a text. Null if there are too many. Cost: one round trip, and a descent into the index for each different name. */
  async containing(query: ValuesQuery): Promise<readonly string[] | null> {
    const remembered = this.#remembered;
    const names = await this.#find(remembered, query);
    // Those that no server has any longer do not count.
    return names === null && remembered.length > 0 ? this.#find([], query) : names;
  }

  async #find(remembered: readonly Buffer[], { contains, looksMax }: ValuesQuery): Promise<readonly string[] | null> {
    const text = Buffer.from(contains);
    const has = (name: Buffer): boolean => name.includes(text);
    const wanted = remembered.filter(has);
    const rows = await queryStored<NameRow>(this.#pool, {
      name: "server_keys",
      // Each step goes to the next greater name, so that the many servers with one name cost as much as one.
      text: `with recursive steps (value, until) as (
          select n.value, g.until from (
            select value as after, coalesce(lead(value) over (order by value), $2::bytea) as until from unnest($1::bytea[]) as k (value)
          ) g cross join lateral (${nextName("g.after", "g.until")}) n
          union all
          select n.value, s.until from steps s cross join lateral (${nextName("s.value", "s.until")}) n
        )
        select value, true as is_new from (select value from steps limit $4) s
        union all
        select k.value, false from unnest($3::bytea[]) as k (value)
        cross join lateral (select from servers where ${PRESENT} and ${KEY_NAME} = k.value order by ${KEY_NAME} limit 1) s`,
      values: [[BEFORE_ALL, ...remembered], AFTER_ALL, wanted, Math.max(looksMax - remembered.length, 0) + 1],
    });
    const found = rows.filter((row) => row.is_new).map(({ value }) => value);
    if (remembered.length + found.length > looksMax) {
      this.#remembered = [];
      return null;
    }
    const gone = new Set(wanted.map((name) => name.toString("hex")));
    for (const { value } of rows) gone.delete(value.toString("hex"));
    const kept = remembered.filter((name) => gone.size === 0 || !gone.has(name.toString("hex")));
    const all = [...kept, ...found].sort(Buffer.compare);
    this.#remembered = all;
    return all.filter(has).map((name) => name.toString());
  }
}

const nextName = (after: string, until: string): string =>
  `select ${KEY_NAME} as value from servers where ${PRESENT} and ${KEY_NAME} > ${after} and ${KEY_NAME} < ${until} order by ${KEY_NAME} limit 1`;
