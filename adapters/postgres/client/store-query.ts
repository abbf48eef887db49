import type { Pool, PoolClient, QueryResultRow } from "pg";
import { assert } from "../../../core/assert.ts";
import { runStored } from "./run-stored.ts";
import { retryConflicts } from "./transaction.ts";
import { BYTES_AS_TEXT } from "./value-types.ts";

/** One statement of a store, prepared under its name on each connection. */
export interface StoreQuery {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
  /** Postgres plans the statement with its values each time, instead of keeping it prepared. For rare statements whose values decide on the best plan. */
  readonly isPlannedEachTime?: boolean;
  /** Values of type `bytea` are returned as Postgres' text of them, which `bytesOfText` reads. For columns that are read of few rows only. */
  readonly isBytesAsText?: boolean;
}

const NAME_LENGTH_MAX = 63;

/** The rows of one statement, which is its own transaction and is repeated after a deadlock. Throws `StoreError`. */
export function queryStored<Row extends QueryResultRow>(pool: Pool, query: StoreQuery): Promise<readonly Row[]> {
  return runStored(query.name, () => retryConflicts(() => queryRows<Row>(pool, query)));
}

/** The rows of one statement within a transaction. */
export async function queryRows<Row extends QueryResultRow>(
  client: Pool | PoolClient,
  query: StoreQuery,
): Promise<readonly Row[]> {
  const { name, text, values, isPlannedEachTime = false, isBytesAsText = false } = query;
  // Postgres cuts longer names off, so that two statements could share one, and each would fail on a connection that knows the other.
  assert(name.length <= NAME_LENGTH_MAX, `the name of the statement ${name} is too long`);
  const { rows } = await client.query<Row>({
    ...(!isPlannedEachTime && { name }),
    ...{ text, values: [...values] },
    ...(isBytesAsText && { types: BYTES_AS_TEXT }),
  });
  return rows;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The ids that are valid UUIDs. Ids may come from outside, and a malformed one must not fail a whole batch. */
export function onlyUuids(ids: readonly string[]): readonly string[] {
  return ids.filter((id) => UUID.test(id));
}

/**
 * A column's time in whole milliseconds since the epoch, as `<column>_ms`, a number. It is exact: the microseconds of a time of this age are whole numbers
 * that a double can hold, and rounding finds them again. `extract` would take three times as long, and a page of a list has some hundreds of times.
 */
export function selectMs(column: string, table = ""): string {
  return `floor(round(date_part('epoch', ${table}${column}) * 1e6) / 1e3) as ${column}_ms`;
}
