import { expect, test } from "vitest";
import { conductorId, dispatchOf, hostTree, taskId } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase } from "../../../test/databases.ts";
import { createPool } from "../pool.ts";
import { PostgresCellStore } from "../postgres-cell-store.ts";
import { PostgresLedger } from "../postgres-ledger.ts";

test("a payload that cannot be read is a task that says nothing; the others of its batch are taken as they are", async () => {
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
