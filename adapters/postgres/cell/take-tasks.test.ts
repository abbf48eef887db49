import { expect, test } from "vitest";
import { conductorId, dispatchOf, hostTree, taskId } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresLedger } from "../ledger/postgres-ledger.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";

const ENDED = 20_000;
const OPEN = 200;

test("a task with an unreadable payload is taken as an empty task, and the others of its batch are taken as they are", async () => {
  const database = await freshDatabase("cell");
  const pool = createPool({ url: database.url, applicationName: "take tasks test" });
  try {
    const store = new PostgresCellStore(pool);
    await new PostgresLedger(pool).putTrees([hostTree(0, 8)]);
    await store.renewLease({ id: conductorId(0), name: "c", leaseMs: 3_600_000 });
    await store.dispatch([1, 2].map((server) => dispatchOf({ server, task: server, hosts: [0] })));
    await pool.query("update tasks set payload = '\\xff' where id = $1", [taskId(1)]);
    const taken = await store.sweepTasks(conductorId(0), 0, 10);
    const byId = new Map(taken.map(({ task }) => [task.id, task]));
    expect(byId.get(taskId(1))).toEqual({ id: taskId(1), server: undefined, work: undefined });
    expect(byId.get(taskId(2))?.work?.$case).toBe("build");
  } finally {
    await pool.end();
    await database.drop();
  }
});

test("a sweep reads the open tasks by their index, however many tasks have ended", async () => {
  const fresh = await freshDatabase("cell");
  const one = createPool({ url: fresh.url, applicationName: "sweep by index", connectionsMax: 1 });
  const read = async () => {
    await one.query("select pg_stat_force_next_flush()");
    const { rows } = await one.query<{ scans: string; rows: string; entries: string }>(
      `select t.seq_scan as scans, t.idx_tup_fetch as rows, i.idx_tup_read as entries
       from pg_stat_user_tables t join pg_stat_user_indexes i using (relid)
       where t.relname = 'tasks' and i.indexrelname = 'tasks_open'`,
    );
    return { scans: Number(rows[0]?.scans), rows: Number(rows[0]?.rows), entries: Number(rows[0]?.entries) };
  };
  try {
    const store = new PostgresCellStore(one);
    await store.renewLease({ id: conductorId(0), name: "one", leaseMs: 3_600_000 });
    await new PostgresLedger(one).putTrees([hostTree(0, 2 * OPEN)]);
    await one.query(
      `insert into tasks (id, server_uuid, kind, payload, outcome, ended_at)
       select gen_random_uuid(), gen_random_uuid(), 'build', '', 'success', now() from generate_series(1, $1::int)`,
      [ENDED],
    );
    const servers = Array.from({ length: OPEN }, (_, server) => server);
    await store.dispatch(servers.map((server) => dispatchOf({ server, task: server, hosts: [0] })));
    await one.query("analyze tasks");
    const before = await read();
    const startMs = performance.now();
    expect(await store.sweepTasks(conductorId(0), 0, 10)).toHaveLength(10);
    if (process.env.BERTH_PRINT !== undefined) process.stdout.write(`swept in ${performance.now() - startMs} ms\n`);
    const after = await read();
    expect(after.scans - before.scans).toBe(0);
    expect(after.entries - before.entries).toBe(OPEN);
    // The sweep reads each open task once, and the taken ones a few more times.
    expect(after.rows - before.rows).toBeLessThan(OPEN + 100);
  } finally {
    await one.end();
    await fresh.drop();
  }
});
