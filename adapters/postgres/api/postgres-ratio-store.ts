import type { Pool } from "pg";
import type { RatioScope, RatioSettings, RatioStore } from "../../../core/stores/api/ratio-store.ts";
import type { Ratios } from "../../../core/stores/cell/host-admin-store.ts";
import { runStored } from "../client/run-stored.ts";
import { queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { raiseVersion } from "./postgres-aggregate-store.ts";

const TABLES = {
  aggregate: { table: "aggregate_ratios", key: "aggregate_id", type: "int" },
  host: { table: "host_ratios", key: "host", type: "text" },
} as const;

/** Operators' ratios in the API database. Lock order: that of aggregates (`raiseVersion` first). Throws `StoreError`. */
export class PostgresRatioStore implements RatioStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async ratioSettings(): Promise<RatioSettings> {
    const [byAggregate, byHost] = await Promise.all([
      readRatios<number>(this.#pool, "aggregate"),
      readRatios<string>(this.#pool, "host"),
    ]);
    return { byAggregate, byHost };
  }

  changeRatios(scope: RatioScope, changes: Readonly<Record<string, number | null>>): Promise<boolean> {
    const { table, key, type } = TABLES[scope.kind];
    const owner = scope.kind === "host" ? scope.host : scope.id;
    const entries = Object.entries(changes);
    return runStored("change_ratios", () =>
      inTransaction(this.#pool, async (client) => {
        await raiseVersion(client);
        if (scope.kind === "aggregate") {
          const known = await queryRows(client, {
            name: "ratio_aggregate",
            text: "select id from aggregates where id = $1::bigint",
            values: [scope.id],
          });
          if (known.length === 0) return false;
        }
        await queryRows(client, {
          name: `drop_${table}`,
          text: `delete from ${table} where ${key} = $1::${type} and class = any ($2)`,
          values: [owner, entries.map(([name]) => name)],
        });
        const set = entries.filter(([, ratio]) => ratio !== null);
        await queryRows(client, {
          name: `insert_${table}`,
          text: `insert into ${table} (${key}, class, ratio)
            select $1::${type}, w.class, w.ratio from unnest($2::text[], $3::float8[]) as w (class, ratio)`,
          values: [owner, set.map(([name]) => name), set.map(([, ratio]) => ratio)],
        });
        return true;
      }),
    );
  }
}

async function readRatios<Key>(pool: Pool, scope: keyof typeof TABLES): Promise<ReadonlyMap<Key, Ratios>> {
  const { table, key } = TABLES[scope];
  const rows = await queryStored<{ owner: Key; ratios: Ratios }>(pool, {
    name: table,
    text: `select ${key} as owner, jsonb_object_agg(class, ratio) as ratios from ${table} group by ${key} order by ${key}`,
    values: [],
  });
  return new Map(rows.map((row) => [row.owner, row.ratios]));
}
