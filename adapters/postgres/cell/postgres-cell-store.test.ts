import { randomBytes } from "node:crypto";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  closingOf,
  conductorId,
  deleteTask,
  dispatchOf,
  hostName,
  hostTree,
  serverId,
  swapTo,
  taskId,
} from "../../../test/contract/cell-fixtures.ts";
import { cellStoreContract } from "../../../test/contract/cell-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyCellTables } from "../../../test/rigs/empty-cell.ts";
import { createPool } from "../client/pool.ts";
import { PostgresLedger } from "../ledger/postgres-ledger.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";

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
  const damage = async (id: string) =>
    void (await pool.query("update tasks set payload = '\\xff' where id = $1", [id]));
  return { store: new PostgresCellStore(pool), ledger: new PostgresLedger(pool), damage, close: async () => undefined };
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

test("a dispatch is not refused when a slow scheduler leaves the cell under an earlier assignment just before it", async () => {
  await emptyCellTables(pool);
  await new PostgresLedger(pool).putTrees([hostTree(0, 4)]);
  const store = new PostgresCellStore(pool);
  let dispatchesSeen = 0;
  const racing = new Proxy(pool, {
    get(target, key) {
      if (key !== "query") return Reflect.get(target, key);
      return async (query: { readonly name?: string }) => {
        if (query.name === "cell_dispatch" && dispatchesSeen++ === 0)
          await store.close([closingOf(1, 1), closingOf(2, 2)]);
        return target.query(query as { text: string });
      };
    },
  });
  const dispatches = [1, 2, 3].map((server) => ({
    ...dispatchOf({ server, task: server, hosts: [0] }),
    assignment: 2,
  }));
  const outcomes = await new PostgresCellStore(racing).dispatch(dispatches);
  expect(outcomes.map(({ kind }) => kind)).toEqual(["dispatched", "closed", "dispatched"]);
  expect((await store.servers([serverId(1)])).map(({ status }) => status)).toEqual(["BUILD"]);
});

test("a dispatch that Postgres refuses for lack of space is answered, and the other rounds of its batch are kept", async () => {
  await emptyCellTables(pool);
  await new PostgresLedger(pool).putTrees([hostTree(0, 4)]);
  await pool.query(`create function refuse_for_space() returns trigger language plpgsql as $$
    begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`);
  const store = new PostgresCellStore(pool);
  const group = { uuid: serverId(0), policy: "anti-affinity", maxServerPerHost: 0 };
  const refused = { kind: "write-refused", why: "could not extend file: No space left on device" };
  try {
    await pool.query(`create trigger no_space before insert on tasks for each row
      when (new.id = '${taskId(2)}' or new.id = '${taskId(3)}') execute function refuse_for_space()`);
    // The same server twice makes two rounds.
    const twice = [dispatchOf({ server: 1, task: 1, hosts: [0] }), dispatchOf({ server: 1, task: 4, hosts: [0] })];
    const outcomes = await store.dispatch([twice[0]!, dispatchOf({ server: 2, task: 2, hosts: [0] }), twice[1]!]);
    expect(outcomes).toMatchObject([refused, refused, { kind: "dispatched" }]);
    expect((await store.servers([1, 2].map(serverId))).map(({ uuid }) => uuid)).toEqual([serverId(1)]);
    // A server of a group, whose dispatch is a transaction of several statements.
    expect(await store.dispatch([dispatchOf({ server: 3, task: 3, hosts: [0], spec: { group } })])).toEqual([refused]);
    // A refused commit may have been carried out, so nothing is answered.
    await pool.query("drop trigger no_space on tasks");
    await pool.query(`create constraint trigger no_space after insert on tasks deferrable initially deferred
      for each row execute function refuse_for_space()`);
    const atCommit = store.dispatch([dispatchOf({ server: 3, task: 3, hosts: [0], spec: { group } })]);
    await expect(atCommit).rejects.toMatchObject({ name: "StoreError", code: "unavailable" });
  } finally {
    await pool.query("drop function refuse_for_space cascade");
  }
});

test("rows that are named by key are found by key, however many servers and open tasks there are", async () => {
  const fresh = await freshDatabase("cell");
  const one = createPool({ url: fresh.url, applicationName: "by key", connectionsMax: 1 });
  const store = new PostgresCellStore(one);
  const lookedAt = async (): Promise<number> => {
    await one.query("select pg_stat_force_next_flush()");
    const { rows } = await one.query<{ entries: string }>(
      "select sum(idx_tup_read) as entries from pg_stat_user_indexes where relname in ('tasks', 'servers', 'migrations')",
    );
    return Number(rows[0]?.entries);
  };
  try {
    await new PostgresLedger(one).putTrees([hostTree(0, 400), hostTree(1, 400)]);
    // Plans are made while the tables are still empty.
    await store.requestDelete([deleteTask(999, 1999)]);
    await store.homes([serverId(999)]);
    const group = { uuid: serverId(0), policy: "anti-affinity", maxServerPerHost: 0 };
    await store.dispatch([dispatchOf({ server: 998, task: 998, hosts: [0], spec: { group } })]);
    const others = Array.from({ length: 300 }, (_, server) => server);
    await store.dispatch(others.map((server) => dispatchOf({ server, task: server, hosts: [0, 1] })));
    const conductor = conductorId(0);
    await store.renewLease({ id: conductor, name: "one", leaseMs: 3_600_000 });
    await one.query(
      `insert into migrations (uuid, server_uuid, kind, status, dest_host, dest_attempt_id, ended, runs)
       select gen_random_uuid(), uuid, 'resize', 'confirmed', '', '', true, false from servers`,
    );
    const tenureOf = (task: number, epoch = 1) => ({ taskId: taskId(task), serverUuid: serverId(7), epoch });

    const before = await lookedAt();
    expect(await store.takeTasks(conductor, [taskId(7)])).toHaveLength(1);
    const hop = { ...tenureOf(7), from: 0, reason: "down", to: 1, toHost: hostName(1), change: swapTo(7, 1) };
    expect(await store.hop([hop])).toEqual([{ kind: "committed" }]);
    expect(await store.commitActive([{ ...tenureOf(7), selection: 1 }])).toEqual([{ kind: "committed" }]);
    expect(await store.requestDelete([deleteTask(7, 1007)])).toMatchObject([{ kind: "queued" }]);
    expect(await store.takeTasks(conductor, [taskId(1007)])).toHaveLength(1);
    expect(await store.commitDeleted([tenureOf(1007)])).toEqual([{ kind: "committed" }]);
    expect(await store.homes([serverId(8)])).toHaveLength(1);
    const near = dispatchOf({ server: 997, task: 997, hosts: [0], spec: { group } });
    expect(await store.dispatch([near])).toMatchObject([{ kind: "group-conflict" }]);
    expect((await lookedAt()) - before).toBeLessThan(others.length);
  } finally {
    await one.end();
    await fresh.drop();
  }
});

test("a service of the previous version, which asks for groups by the old function, also learns of moves", async () => {
  const fresh = await freshDatabase("cell");
  const one = createPool({ url: fresh.url, applicationName: "old groups test" });
  const store = new PostgresCellStore(one);
  try {
    await new PostgresLedger(one).putTrees([0, 1, 2].map((host) => hostTree(host, 4)));
    const group = { uuid: serverId(0), policy: "anti-affinity", maxServerPerHost: 0 };
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0], spec: { group } })]);
    await one.query(
      `insert into migrations (uuid, server_uuid, kind, status, source_host, dest_host, dest_attempt_id, runs)
       values (gen_random_uuid(), $1, 'live-migrate', 'running', $2, $3, '', true)`,
      [serverId(1), hostName(0), hostName(1)],
    );
    const { rows } = await one.query("select at, conflicting from cell_join_groups($1, $2, $3, $4, $5)", [
      [serverId(2), serverId(3)],
      [group.uuid, group.uuid],
      ["anti-affinity", "anti-affinity"],
      [1, 1],
      [hostName(1), hostName(2)],
    ]);
    expect(rows).toEqual([{ at: 1, conflicting: [hostName(0), hostName(1)] }]);
  } finally {
    await one.end();
    await fresh.drop();
  }
});
