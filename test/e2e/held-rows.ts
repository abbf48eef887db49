import pg from "pg";

/**
 * Locks the rows of `query` (a `select … for update`) in a transaction of its own until the returned function is called. A transaction that
 * wants to write these rows waits at exactly that point.
 */
export async function holdRows(databaseUrl: string, query: string, values: readonly unknown[] = []) {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "e2e lock" });
  await client.connect();
  await client.query("begin");
  await client.query(query, [...values]);
  return async function release(): Promise<void> {
    await client.query("rollback");
    await client.end();
  };
}
