import type pg from "pg";

/** At most this many ids of a kind are named. */
const REMAINS_NAMED_MAX = 5;

interface RemainsRow {
  readonly kind: string;
  readonly count: number;
  readonly first: readonly string[];
}

/** Counts the rows of `found`, a query with the columns kind and id. Resolves with a text for each kind that has any, with examples, such as `servers: 3 (a, b, c)`. */
export async function countRemains(
  client: Pick<pg.Client, "query">,
  found: string,
  values: readonly unknown[] = [],
): Promise<readonly string[]> {
  const { rows } = await client.query<RemainsRow>(
    `select kind, count(*)::int as count, (array_agg(id order by id))[1:${REMAINS_NAMED_MAX}] as first
     from (${found}) as found group by kind order by kind`,
    [...values],
  );
  return rows.map(
    ({ kind, count, first }) => `${kind}: ${count} (${first.join(", ")}${count > first.length ? ", …" : ""})`,
  );
}
