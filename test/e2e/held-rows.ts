import pg from "pg";

/**
 * Locks what `query` (a `select … for update`) finds, in a transaction of its own, until the returned function is called:
 * whoever wants to write there waits at exactly that point.
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
