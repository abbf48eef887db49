import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { createPool } from "./pool.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase("cell");
});
afterAll(() => database.drop());

test("a pool that is not used keeps one connection and closes the others, so that the next call need not connect", async () => {
  const pool = createPool({ url: database.url, applicationName: "idle", idleMs: 20 });
  const session = async () => (await pool.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid;
  try {
    const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
    const opened = await Promise.all(
      clients.map(
        async (client) => (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid,
      ),
    );
    for (const client of clients) client.release();
    await eventually("the pool to close connections", async () => pool.totalCount <= 1);
    expect(opened).toContain(await session());
  } finally {
    await pool.end();
  }
});
