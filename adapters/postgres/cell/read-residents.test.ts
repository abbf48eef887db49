import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serverId } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";

const LEFT = 2_000;
const SEEN_MS = 100_000;

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "residents test", connectionsMax: 1 });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** How many entries of the index by host its scans have met so far. */
async function entriesMet(): Promise<number> {
  await pool.query("select pg_stat_force_next_flush()");
  const { rows } = await pool.query<{ met: string }>(
    "select idx_tup_read as met from pg_stat_user_indexes where indexrelname = 'servers_listed_by_host'",
  );
  return Number(rows[0]!.met);
}

test("servers that have left a host are walked once and not again with each look, although nothing has been vacuumed", async () => {
  const uuids = Array.from({ length: LEFT + 1 }, (_, at) => serverId(at));
  await pool.query(
    `insert into servers (uuid, status, spec, project_id, user_id, name, host, created_at)
     select uuid, 'ACTIVE', '', 'project', 'ann', 'web', 'host-' || n % 3, now() from unnest($1::uuid[]) with ordinality as s (uuid, n)`,
    [uuids],
  );
  await pool.query("update servers set host = null where uuid <> $1", [serverId(0)]);
  const store = new PostgresCellStore(pool);
  const look = async () => {
    const before = await entriesMet();
    const residents = await store.residents(["host-0", "host-1", "host-2"]);
    expect(residents.map((homes) => homes.map(({ serverUuid }) => serverUuid))).toEqual([[], [serverId(0)], []]);
    return (await entriesMet()) - before;
  };
  // Another transaction may still need the entries for a moment, or a replication slot that is being made for another test, which waits for all transactions.
  await expect.poll(look, { timeout: SEEN_MS }).toBeLessThan(LEFT / 100);
});
