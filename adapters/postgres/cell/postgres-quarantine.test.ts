import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serverId } from "../../../test/contract/cell-fixtures.ts";
import { quarantineContract } from "../../../test/contract/quarantine.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyCellTables } from "../../../test/rigs/empty-cell.ts";
import { KeptPlans } from "../../../test/rigs/kept-plans.ts";
import { createPool } from "../client/pool.ts";
import { PostgresLedger } from "../ledger/postgres-ledger.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";
import { PostgresHostAdminStore } from "./postgres-host-admin-store.ts";
import { PostgresQuarantine } from "./postgres-quarantine.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "quarantine test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

quarantineContract("Postgres", async () => {
  await emptyCellTables(pool);
  await pool.query("truncate quarantined_guests");
  await pool.query("update incarnation set restored_at = null, timeline_since = null");
  return {
    admin: new PostgresHostAdminStore(pool),
    cell: new PostgresCellStore(pool),
    ledger: new PostgresLedger(pool),
    quarantine: new PostgresQuarantine(pool),
    close: async () => undefined,
  };
});

test("a database on another timeline than before counts as restored from the moment in which that is noticed", async () => {
  const store = new PostgresCellStore(pool);
  await pool.query("update incarnation set restored_at = null, timeline_since = null");
  expect(await store.restoredAgoMs()).toBeNull();
  await pool.query("update incarnation set timeline = 'FFFFFFFF'");
  for (const ms of await Promise.all([1, 2, 3].map(() => store.restoredAgoMs()))) expect(ms).toBeGreaterThanOrEqual(0);
  await pool.query("update incarnation set timeline_since = timeline_since - interval '1 hour'");
  expect(await store.restoredAgoMs()).toBeGreaterThanOrEqual(3_600_000);
  await pool.query("update incarnation set restored_at = now()");
  expect(await store.restoredAgoMs()).toBeLessThan(3_600_000);
});

test("a call that has begun before another one notes the timeline counts from that moment, too, and not from a later one", async () => {
  const early = createPool({ url: database.url, applicationName: "early", connectionsMax: 1 });
  try {
    await pool.query("update incarnation set restored_at = null, timeline_since = null, timeline = 'FFFFFFFF'");
    // Within a transaction, now() is its beginning.
    await early.query("begin");
    await new PostgresCellStore(pool).restoredAgoMs();
    expect(await new PostgresCellStore(early).restoredAgoMs()).toBeGreaterThanOrEqual(0);
    await early.query("rollback");
  } finally {
    await early.end();
  }
});

test("each host is read once to tell whether a guest may be unseen, also by a plan that was made when no host was compared, and none for a server that is young enough", async () => {
  const hosts = 2_000;
  const [old, young] = [serverId(1), serverId(2)];
  const one = createPool({ url: database.url, applicationName: "kept plan", connectionsMax: 1 });
  const plans = new KeptPlans(one);
  const store = new PostgresCellStore(plans.pool);
  try {
    await emptyCellTables(pool);
    await pool.query("update incarnation set restored_at = now()");
    await pool.query(
      `insert into hosts (name, root_provider, agent_id, up) select 'host-' || n, gen_random_uuid(), n::text, true
        from generate_series(1, $1) n`,
      [hosts],
    );
    await pool.query(
      `insert into servers (uuid, status, spec, project_id, user_id, name, created_at)
        values ($1, 'ACTIVE', '', '', '', '', now()), ($2, 'ACTIVE', '', '', '', '', now() + interval '1 hour')`,
      [old, young],
    );
    await one.query("set plan_cache_mode = force_generic_plan");
    expect(await store.guestsLeft([old, young])).toEqual([true, false]);
    await pool.query("insert into compared_hosts (host, incarnation) select name, cell_incarnation() from hosts");
    expect(await store.guestsLeft([old, young])).toEqual([false, false]);
    expect(await plans.rowsRead()).toBeLessThanOrEqual(hosts);
    expect(await store.guestsLeft([young])).toEqual([false]);
    expect(await plans.rowsRead((plan) => plan["Relation Name"] === "hosts")).toBe(0);
  } finally {
    await one.end();
  }
});
