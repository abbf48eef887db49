import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { withClient } from "./databases.ts";
import { createPool } from "./pool.ts";
import { PrimaryClient } from "./primary-client.ts";
import { storeErrorCodeOf } from "./run-stored.ts";
import { inTransaction } from "./transaction.ts";

let database: TestDatabase;
let pool: pg.Pool;
const uncaught: unknown[] = [];
const onUncaught = (error: unknown) => void uncaught.push(error);

beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "lost connections" });
  process.on("uncaughtException", onUncaught);
});
afterAll(async () => {
  process.off("uncaughtException", onUncaught);
  await pool.end();
  await database.drop();
});

/** Ends the session, and resolves when its process is gone. */
async function kill(pid: number): Promise<void> {
  await withClient(database.url, async (client) => {
    await client.query("select pg_terminate_backend($1)", [pid]);
    await eventually("the session to end", async () => {
      const { rowCount } = await client.query("select from pg_stat_activity where pid = $1", [pid]);
      return rowCount === 0;
    });
  });
}

const pidOf = async (client: pg.ClientBase): Promise<number> => {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]!.pid;
};

const endOf = (client: pg.ClientBase): Promise<void> => new Promise((resolve) => client.once("end", () => resolve()));

describe("a session that is ended from outside", () => {
  test("between two statements of a transaction: the transaction rejects with an error that permits another try", async () => {
    const lost = inTransaction(pool, async (client) => {
      const ended = endOf(client);
      await kill(await pidOf(client));
      await ended;
      await client.query("select 1");
    });
    const error = await lost.catch((reason: unknown) => reason);
    expect(storeErrorCodeOf(error)).toBe("unavailable");
    expect(uncaught).toEqual([]);
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  });

  test("during a statement of a transaction, before its rollback is sent: the transaction rejects", async () => {
    let ended: Promise<void> | null = null;
    const lost = inTransaction(pool, async (client) => {
      ended = endOf(client);
      const pid = await pidOf(client);
      const sleeping = client.query("select pg_sleep(60)");
      await Promise.all([kill(pid), sleeping]);
    });
    const error = await lost.catch((reason: unknown) => reason);
    expect(storeErrorCodeOf(error)).toBe("unavailable");
    await ended;
    expect(uncaught).toEqual([]);
  });

  test("while the connection is idle: the pool reports it, and its next statement has another connection", async () => {
    const told: Error[] = [];
    const own = createPool({
      url: database.url,
      applicationName: "lost connections",
      connectionsMax: 1,
      onConnectionLost: (error) => told.push(error),
    });
    const client = await own.connect();
    const pid = await pidOf(client);
    client.release();
    await kill(pid);
    await eventually("the pool to tell", () => told.length > 0);
    expect((await own.query("select pg_backend_pid() <> $1 as other", [pid])).rows).toEqual([{ other: true }]);
    await own.end();
    expect(uncaught).toEqual([]);
  });

  test("of a single connection: its next statement rejects", async () => {
    const client = new PrimaryClient({ connectionString: database.url, application_name: "lost connections" });
    await client.connect();
    const ended = endOf(client);
    await kill(await pidOf(client));
    await ended;
    await expect(client.query("select 1")).rejects.toThrow();
    await client.end();
    expect(uncaught).toEqual([]);
  });
});
