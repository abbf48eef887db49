import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { goneFrom, serverId, serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { withClient } from "../client/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";

// `open_requests` follows `requests`, whichever version of the services writes. See the table in schema/api/migrations/0001-baseline.sql.

/** On a busy machine, a call may wait longer for its connection than a service waits. */
const PATIENT = { connectMs: 60_000 };

let database: TestDatabase;
let pool: Pool;
let store: PostgresApiStore;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "open requests test", ...PATIENT });
  store = new PostgresApiStore(pool);
});
beforeEach(() => pool.query("truncate requests"));
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const SERVERS = Array.from({ length: 40 }, (_, server) => server);
const UUIDS = SERVERS.map(serverId);
const acceptAll = (): Promise<void> => store.accept(SERVERS.map((server) => serverSpec(server)));
const assignAll = (from: string | null, to: string) =>
  store.assignCells(UUIDS.map((serverUuid) => ({ serverUuid, from, to })));

/** The rows that only one of the two tables has. */
async function differences(): Promise<readonly unknown[]> {
  const columns = "server_uuid, updated_at, state, cell";
  const open = `select ${columns} from requests
    where state in ('accepted', 'cancelled') or (state = 'dispatched' and not arrived)`;
  const kept = `select ${columns} from open_requests`;
  const { rows } = await pool.query(`(${open} except ${kept}) union all (${kept} except ${open})`);
  return rows;
}

const INSERT_BEFORE = `insert into requests (server_uuid, state, spec, project_id, user_id, name, created_at)
  values ($1, 'accepted', '', 'p', 'u', 'n', now()) on conflict do nothing`;
const CANCEL_BEFORE = "update requests set state = 'cancelled', cancelled_at = now(), updated_at = now()";

test("a request is open until it has ended or arrived, and again when it is deleted after its arrival", async () => {
  const open = async () => (await pool.query("select distinct state, cell from open_requests")).rows;
  await acceptAll();
  expect(await open()).toEqual([{ state: "accepted", cell: null }]);
  await assignAll(null, "east");
  expect(await open()).toEqual([{ state: "dispatched", cell: "east" }]);
  await store.markArrived("east", UUIDS);
  expect(await open()).toEqual([]);
  await Promise.all(UUIDS.map((uuid) => store.cancel(uuid, "req-a")));
  expect(await open()).toEqual([{ state: "cancelled", cell: "east" }]);
  await store.markDeleted(goneFrom("east", UUIDS));
  expect(await open()).toEqual([]);
});

test("a request that is marked as arrived and deleted at the same time is found by the sweep, whichever comes first", async () => {
  await acceptAll();
  await assignAll(null, "east");
  await Promise.all(
    UUIDS.flatMap((uuid) => [store.markArrived("east", [uuid]), store.cancel(uuid, "req-a").then(() => undefined)]),
  );
  expect((await store.stale(0, 100)).map((record) => record.serverUuid).sort()).toEqual([...UUIDS].sort());
});

test("batches of all kinds at once, each of them twice, leave the two tables consistent", async () => {
  const works = [
    () => acceptAll(),
    () => assignAll(null, "east"),
    () => assignAll("east", "west"),
    () => store.markArrived("east", UUIDS),
    () => store.markArrived("west", UUIDS.slice(10)),
    () => store.takeLost("west", UUIDS, 0),
    () => store.failRequests(UUIDS.slice(0, 10).map((serverUuid) => ({ serverUuid, cell: "west", fault: "none" }))),
    () => store.stale(0, 20),
    () => store.putOff(UUIDS.slice(3).map((serverUuid) => ({ serverUuid, delayMs: 0 }))),
    () => Promise.all(UUIDS.slice(5, 30).map((uuid) => store.cancel(uuid, "req-a"))),
    () => store.markDeleted(goneFrom("west", UUIDS.slice(15))),
  ];
  // Runs them in several orders, each starting with another kind, so that each kind comes before and after each other one.
  for (let first = 0; first < works.length; first += 1) {
    await pool.query("truncate requests");
    const order = [...works.slice(first), ...works.slice(0, first)];
    await Promise.all([...order, ...order].map((work) => work()));
    expect(await differences()).toEqual([]);
    for (const work of works) await work();
    expect(await differences()).toEqual([]);
  }
});

test("the sweep also takes requests that services of the previous version wrote", async () => {
  await pool.query(INSERT_BEFORE, [serverId(1)]);
  await pool.query(INSERT_BEFORE, [serverId(1)]);
  await pool.query(INSERT_BEFORE, [serverId(2)]);
  await assignAll(null, "east");
  await store.markArrived("east", UUIDS);
  await pool.query(`${CANCEL_BEFORE} where server_uuid = $1`, [serverId(2)]);
  expect((await store.stale(0, 10)).map((record) => record.serverUuid)).toEqual([serverId(2)]);
  await pool.query("update requests set state = 'deleted', updated_at = now() where state = 'cancelled'");
  expect(await store.stale(0, 10)).toEqual([]);
  expect(await differences()).toEqual([]);
  await acceptAll();
  await pool.query("delete from requests where server_uuid = $1", [serverId(7)]);
  expect(await differences()).toEqual([]);
});

test("no index of the requests has a column that changes during their life, because every update would then write all index entries again", async () => {
  const { rows } = await pool.query<{ columns: string[] | null; predicate: string | null }>(
    `select pg_get_expr(i.indpred, i.indrelid) as predicate,
       array(select a.attname::text from pg_attribute a where a.attrelid = i.indrelid and a.attnum = any (i.indkey)) as columns
     from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
     where m.amname <> 'brin' and i.indrelid = any (array['requests', 'open_requests']::regclass[])`,
  );
  // Only users change the name. An index of the kind BRIN is not written for each row.
  const fixed = ["server_uuid", "project_id", "created_at", "name"];
  expect(rows.flatMap(({ columns }) => columns ?? []).filter((column) => !fixed.includes(column))).toEqual([]);
  // `gone` and `fault` are written once. Changes that users make leave the state as it is, and changes of the state leave those of users as
  // they are.
  const rare = ["gone", "fault", "changes"];
  const all = await pool.query<{ name: string }>(
    "select distinct column_name as name from information_schema.columns where table_name = any (array['requests', 'open_requests'])",
  );
  const changing = all.rows.map(({ name }) => name).filter((name) => !fixed.includes(name) && !rare.includes(name));
  const named = changing.filter((column) => rows.some(({ predicate }) => predicate?.match(`\\b${column}\\b`)));
  expect(named).toEqual([]);
});

test("listing a project's servers fetches only the listed rows, not later deleted ones", async () => {
  await acceptAll();
  await pool.query(
    `insert into requests (server_uuid, state, gone, spec, project_id, user_id, name, created_at)
     select gen_random_uuid(), 'deleted', true, '', project_id, 'u', 'n', now() + interval '1 hour'
     from requests, generate_series(1, 100)`,
  );
  await pool.query("analyze requests");
  const single = createPool({ url: database.url, applicationName: "list", connectionsMax: 1, findsByKeys: true });
  const fetched = async () => {
    await single.query("select pg_stat_force_next_flush()");
    const { rows } = await single.query<{ fetched: number }>(
      "select idx_tup_fetch + seq_tup_read as fetched from pg_stat_user_tables where relname = 'requests'",
    );
    return Number(rows[0]?.fetched);
  };
  const own = new PostgresApiStore(single);
  const projectId = serverSpec(0).projectId;
  for (const project of [projectId, null]) {
    const before = await fetched();
    const listed = await own.listRequests({ projectId: project, marker: null, limit: 10 });
    expect(listed).toHaveLength(10);
    expect((await fetched()) - before).toBeLessThanOrEqual(20);
  }
  await own.close();
});

test("restoring only the data fills both tables, in the order in which pg_dump writes them", async () => {
  await acceptAll();
  await assignAll(null, "east");
  await withClient(database.url, async (client) => {
    await client.query("begin; create temp table saved_open on commit drop as table open_requests");
    await client.query("create temp table saved on commit drop as table requests");
    await client.query("truncate requests");
    await client.query("insert into open_requests select * from saved_open; insert into requests select * from saved");
    await client.query("commit");
  });
  expect((await pool.query("select count(*)::int as count from requests")).rows).toEqual([{ count: UUIDS.length }]);
  expect(await differences()).toEqual([]);
});

test("a call within a limit of open requests passes over those that have arrived, however many they are", async () => {
  const one = createPool({
    url: database.url,
    applicationName: "open requests by index",
    connectionsMax: 1,
    ...PATIENT,
  });
  const alone = new PostgresApiStore(one);
  const entriesRead = async () => {
    await one.query("select pg_stat_force_next_flush()");
    const { rows } = await one.query<{ entries: string }>(
      "select idx_tup_read as entries from pg_stat_user_indexes where indexrelname = 'open_requests_project_id_idx'",
    );
    return Number(rows[0]?.entries);
  };
  const readByAccept = async () => {
    const before = await entriesRead();
    const outcomes = await alone.acceptWithin([[serverSpec(1)]], { openMax: 10, quotas: null });
    const read = (await entriesRead()) - before;
    await one.query("delete from requests where server_uuid = $1", [serverId(1)]);
    expect(outcomes).toEqual([{ kind: "accepted" }]);
    return read;
  };
  const arrived = Array.from({ length: 500 }, (_, server) => server + 1_000);
  try {
    await alone.accept(arrived.map((server) => serverSpec(server)));
    await alone.assignCells(arrived.map((server) => ({ serverUuid: serverId(server), from: null, to: "east" })));
    await alone.markArrived("east", arrived.map(serverId));
    // The first call marks the entries of the requests that have arrived, unless somebody still sees the rows as they were, such as an analysis of a table.
    await expect.poll(readByAccept, { timeout: 60_000 }).toBeLessThan(100);
  } finally {
    await one.end();
  }
});

test("requests that are written and assigned together stay on their pages, so that no index gets another entry", async () => {
  const one = createPool({
    url: database.url,
    applicationName: "requests on their pages",
    connectionsMax: 1,
    ...PATIENT,
  });
  const alone = new PostgresApiStore(one);
  const updates = async () => {
    await one.query("select pg_stat_force_next_flush()");
    const { rows } = await one.query<{ moved: string }>(
      "select sum(n_tup_upd - n_tup_hot_upd) as moved from pg_stat_user_tables where relname in ('requests', 'open_requests')",
    );
    return Number(rows[0]?.moved);
  };
  const servers = Array.from({ length: 200 }, (_, server) => server + 5_000);
  try {
    await alone.accept(servers.map((server) => serverSpec(server)));
    const before = await updates();
    await alone.assignCells(servers.map((server) => ({ serverUuid: serverId(server), from: null, to: "east" })));
    expect((await updates()) - before).toBeLessThan(20);
  } finally {
    await one.end();
  }
});
