import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { portNoteStoreContract } from "../../../test/contract/port-note-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresPortNoteStore } from "./postgres-port-note-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "port note store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

test.each([
  ["a settled note", true],
  ["no note", false],
])(
  "of two calls that open %s of one server at the same time, the second is told of the first",
  async (_what, isThere) => {
    const store = new PostgresPortNoteStore(pool);
    const note = { serverUuid: randomUUID(), keptPorts: [] };
    if (isThere) await store.settleNotes(await store.openNotes([note]));
    const first = await pool.connect();
    try {
      // The first call's statement has run, and its transaction is about to end.
      await first.query("begin");
      const opening = await new PostgresPortNoteStore(first as unknown as Pool).openNotes([note]);
      const second = store.openNotes([note]);
      await eventually("the second call's wait", async () => {
        const waiting =
          "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        return (await pool.query(waiting)).rows.length === 1;
      });
      await first.query("commit");
      expect([...opening, ...(await second)]).toMatchObject([{ wasOpen: false }, { wasOpen: true }]);
    } finally {
      first.release(true);
    }
  },
);

portNoteStoreContract("Postgres", async () => {
  await emptyTables(pool, ["port_notes", "open_requests", "requests"]);
  return { store: new PostgresPortNoteStore(pool), requests: new PostgresApiStore(pool) };
});
