import { randomBytes } from "node:crypto";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dispatchOf, hostTree } from "../../test/contract/cell-fixtures.ts";
import { cellStoreContract } from "../../test/contract/cell-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../test/databases.ts";
import { emptyCellTables } from "../../test/empty-cell.ts";
import { createPool } from "./pool.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";
import { PostgresLedger } from "./postgres-ledger.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "cell store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

cellStoreContract("Postgres", async () => {
  await emptyCellTables(pool);
  return { store: new PostgresCellStore(pool), ledger: new PostgresLedger(pool), close: async () => undefined };
});

test("a dispatch names its transaction as the replication stream does", async () => {
  await emptyCellTables(pool);
  await new PostgresLedger(pool).putTrees([hostTree(0, 4)]);
  const client = await pool.connect();
  try {
    const slot = `dispatch_${randomBytes(6).toString("hex")}`;
    await client.query("select pg_create_logical_replication_slot($1, 'pgoutput', true)", [slot]);
    const [dispatched] = await new PostgresCellStore(pool).dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
    const { rows } = await client.query<{ xid: string }>(
      `select distinct xid::text from pg_logical_slot_peek_binary_changes($1, null, null,
         'proto_version', '1', 'publication_names', 'berth_servers')`,
      [slot],
    );
    expect(rows.map(({ xid }) => ({ kind: "dispatched", xid: Number(xid) }))).toEqual([dispatched]);
  } finally {
    client.release(true);
  }
});
