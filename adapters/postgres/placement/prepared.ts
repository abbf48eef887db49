import { createHash } from "node:crypto";
import type { ClientBase, Pool, QueryResultRow } from "pg";

export type Queryable = Pick<Pool | ClientBase, "query">;

const names = new Map<string, string>();

/**
 * The rows of a statement that is prepared once for each connection, because planning it costs several times as much as running it. Only
 * for statements whose text is constant: each distinct text stays prepared for as long as the connection lasts.
 */
export async function ask<Row extends QueryResultRow>(
  db: Queryable,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  let name = names.get(text);
  if (name === undefined) {
    name = `placement_${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
    names.set(text, name);
  }
  const { rows } = await db.query<Row>({ name, text, values: [...values] });
  return rows;
}

/** A generation as a parameter. Null is not checked. A number that is not an int4 matches no provider. */
export function generationParameter(expected: number | undefined): number | null {
  if (expected === undefined) return null;
  return Number.isInteger(expected) && Math.abs(expected) < 2 ** 31 ? expected : -1;
}
