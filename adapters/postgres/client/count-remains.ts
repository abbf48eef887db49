/** Of so many things of a kind the ids are named. */
const REMAINS_NAMED_MAX = 5;

/** One row for each kind of which the cell has something: how many, and the first of them. */
export interface RemainsRow {
  readonly kind: string;
  readonly count: number;
  readonly first: readonly string[];
}

/** For people, such as `servers: 3 (a, b, c)`. */
export const describeRemains = ({ kind, count, first }: RemainsRow): string =>
  `${kind}: ${count} (${first.join(", ")}${count > first.length ? ", …" : ""})`;

/** Counts rows of several kinds. `found` is a query with the columns kind and id. */
export const countingRemains = (found: string): string =>
  `select kind, count(*)::int as count, (array_agg(id order by id))[1:${REMAINS_NAMED_MAX}] as first
   from (${found}) as found group by kind order by kind`;
