import type { Pool } from "pg";
import { Batcher } from "../../../runtime/batcher.ts";
import { ask } from "./prepared.ts";

/** Most writes that share a statement. */
const BATCH_MAX = 100;

/** SQLSTATEs by which the database has undone all of a statement: a bad value, a broken rule, a conflict, one of our functions'. */
const UNDONE = /^(22|23|40|P0)...$/;

/**
 * Group commit for writes of which each could stand alone: those that arrive while others are on their way go together. When
 * their statement is refused each is done alone, so that none pays for another; when nobody knows what became of it (the
 * connection was lost) all of them fail.
 */
export function together<Item, Outcome>(ways: {
  readonly many: (items: readonly Item[]) => Promise<readonly Outcome[]>;
  readonly one: (item: Item) => Promise<Outcome>;
}): (item: Item) => Promise<Outcome> {
  const run = async (items: readonly Item[]): Promise<readonly PromiseSettledResult<Outcome>[]> => {
    if (items.length > 1) {
      try {
        return (await ways.many(items)).map((value) => ({ status: "fulfilled", value }));
      } catch (error) {
        if (!UNDONE.test(String((error as { code?: unknown }).code))) throw error;
      }
    }
    return Promise.allSettled(items.map(ways.one));
  };
  // One at a time: a commit costs more than a write, and the other kinds of writes go beside.
  const batcher = new Batcher({ run, maxItems: BATCH_MAX, concurrency: 1, maxQueued: 20_000 });
  return async (item) => {
    const result = await batcher.submit(item);
    if (result.status === "rejected") throw result.reason;
    return result.value;
  };
}

/** The columns of a write, as `jsonb_to_recordset` reads them; `at` and `uuid` come by themselves. */
export interface WriteFunction {
  readonly name: "placement_write_inventories" | "placement_set_traits" | "placement_set_aggregates";
  /** Names and types of the arguments after the provider's uuid, in order. */
  readonly columns: readonly (readonly [name: string, type: string])[];
}

/**
 * The rows of one call of the function for each of these, in their order, in one statement. Providers are taken in the order of
 * their ids, as all who lock several do (theirs before those of inventories).
 */
export async function callForEach<Row extends object>(
  pool: Pool,
  { name, columns }: WriteFunction,
  calls: readonly { readonly uuid: string; readonly [column: string]: unknown }[],
): Promise<readonly Row[]> {
  const fields = [["at", "int"], ["uuid", "uuid"], ...columns].map((column) => column.join(" ")).join(", ");
  const values = columns.map(([column]) => `w.${column}`).join(", ");
  const rows = await ask<Row & { at: number }>(
    pool,
    `select w.at, r.* from (
       select w.* from jsonb_to_recordset($1) as w (${fields})
       order by (select p.id from resource_providers p where p.uuid = w.uuid), w.at
     ) w cross join lateral ${name}(w.uuid, ${values}) r`,
    [JSON.stringify(calls.map((call, at) => ({ at, ...call })))],
  );
  return rows.toSorted((a, b) => a.at - b.at);
}
