import type { Pool, PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { attemptIdOf } from "../../../core/tasks/server.ts";
import { conductorId, dispatchOf, hostName, hostTree, serverId, taskId } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyCellTables } from "../../../test/rigs/empty-cell.ts";
import { createPool } from "../client/pool.ts";
import { PostgresLedger } from "../ledger/postgres-ledger.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "races of untaken builds" });
});
beforeEach(async () => {
  await emptyCellTables(pool);
  const store = new PostgresCellStore(pool);
  await new PostgresLedger(pool).putTrees([hostTree(0, 8), hostTree(1, 8)]);
  await store.renewLease({ id: conductorId(0), name: "c", leaseMs: 3_600_000 });
  await store.dispatch([1, 2].map((server) => dispatchOf({ server, task: server, hosts: [0, 1] })));
  // A commit beside another guest of the server is refused, so that its batch is written one by one.
  await pool.query(
    "insert into quarantined_guests (host, attempt_id, server_uuid, state, reason) values ('host-9', 'a', $1, 'running', 'r')",
    [serverId(2)],
  );
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** Commits both builds, the second of which is refused, while `other` has locked the first one's server. */
async function commitBeside(other: (client: PoolClient) => Promise<void>): Promise<readonly string[]> {
  const client = await pool.connect();
  let committing: ReturnType<PostgresCellStore["commitActive"]> | undefined;
  try {
    await client.query("begin");
    await client.query("select from servers where uuid = $1 for update", [serverId(1)]);
    const commits = [1, 2].map((server) => ({
      ...{ taskId: taskId(server), serverUuid: serverId(server), epoch: 0, untakenBy: conductorId(0), selection: 0 },
    }));
    committing = new PostgresCellStore(pool).commitActive(commits);
    const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    await expect.poll(async () => (await pool.query(waiting)).rowCount, { timeout: 20_000 }).toBe(1);
    await other(client);
    await client.query("commit");
    return (await committing).map(({ kind }) => kind);
  } finally {
    client.release(true);
    await committing?.catch(() => {});
  }
}

test("a build that hops under the same epoch while its commit waits does not become ACTIVE on the host that it has left", async () => {
  const hop = (client: PoolClient) =>
    client
      .query("update servers set host = $2, attempt_id = $3 where uuid = $1", [
        serverId(1),
        hostName(1),
        attemptIdOf(taskId(1), 1),
      ])
      .then(() => undefined);
  expect(await commitBeside(hop)).toEqual(["fenced", "quarantined"]);
  expect(await new PostgresCellStore(pool).servers([serverId(1)])).toMatchObject([{ status: "BUILD" }]);
});

test("a commit locks servers before tasks, as a delete of one of its servers does", async () => {
  const lockTask = (client: PoolClient) =>
    client.query("select from tasks where id = $1 for no key update nowait", [taskId(1)]).then(() => undefined);
  expect(await commitBeside(lockTask)).toEqual(["committed", "quarantined"]);
  const [record] = await new PostgresCellStore(pool).tasksOf(serverId(1));
  expect(record?.takings.map((one) => one.conductorId)).toEqual([conductorId(0)]);
});
