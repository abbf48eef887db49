import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CellAuditReader } from "../../adapters/postgres/audit/cell-audit-reader.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { checkVolumes } from "../../core/audit/check-volumes.ts";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import type { Stage, Target } from "../../core/tasks/operation-routes.ts";
import { writeOf } from "../../core/tasks/operation-writes.ts";
import {
  conductorId,
  dispatchOf,
  hostName,
  hostTree,
  providerOf,
  serverId,
  taskId,
} from "../contract/cell-fixtures.ts";
import { beginOperationOn, volumeOf } from "../rigs/begin-operation.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";

let cell: TestDatabase;
let pool: Pool;
let store: PostgresCellStore;
beforeAll(async () => {
  cell = await freshDatabase("cell");
  pool = createPool({ url: cell.url, applicationName: "audit test" });
  store = new PostgresCellStore(pool);
  await new PostgresLedger(pool).putTrees([hostTree(0, 10)]);
  await store.hostsUp("agent", [{ name: hostName(0), rootProvider: providerOf(0) }]);
  await store.renewLease({ id: conductorId(0), name: "conductor", leaseMs: 3_600_000 });
  await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
  const [taken] = await store.takeTasks(conductorId(0), [taskId(1)]);
  await store.commitActive([{ taskId: taskId(1), serverUuid: serverId(1), epoch: taken!.epoch, selection: 0 }]);
});
afterAll(async () => {
  await pool?.end();
  await cell?.drop();
});

async function findings(): Promise<readonly string[]> {
  const reader = await CellAuditReader.open("c1", cell.url, 100);
  try {
    return checkVolumes(reader.frame).map(({ law, what, where, proof }) => `${law}: ${what}: ${where}: ${proof}`);
  } finally {
    await reader.close();
  }
}

/** Begins an operation about the volume, and carries it through these stages. */
async function operate(kind: "swap-volume" | "settle-volume", targets: readonly Exclude<Target, "another">[]) {
  const volume = { ...volumeOf(1), replacedBy: volumeOf(2).volumeId };
  const { task } = await beginOperationOn(store, { server: 1, kind, volume });
  if (task === null) throw new Error(`${kind} did not begin`);
  const [taken] = await store.takeTasks(conductorId(0), [task.id]);
  let stage: Stage = kind === "swap-volume" ? "mirroring" : "unpivoting";
  for (const [at, to] of targets.entries()) {
    const transition = { from: { stage, selection: 0 }, to, selection: 0, reason: "", noted: [], unseenMs: 0 };
    const step = { taskId: task.id, serverUuid: serverId(1), epoch: taken!.epoch, step: at + 1 };
    const outcome = await store.commitStep([{ ...step, ...writeOf(factsOf(task), transition) }]);
    expect(outcome).toMatchObject([{ kind: "committed" }]);
    stage = to as Stage;
  }
}

test("the audit names a volume in doubt with the command that settles it, until it is settled", async () => {
  expect(await findings()).toEqual([]);
  await operate("swap-volume", ["pivoting", "lost"]);
  const [own, other] = [volumeOf(1).volumeId, volumeOf(2).volumeId];
  expect(await findings()).toEqual([
    `6: nobody knows which of two volumes a server's guest uses: cell c1, server ${serverId(1)}, volume ${own}: ` +
      `it may be volume ${other}, which was to replace it: \`berth volume settle ${serverId(1)} ${own}\` asks ${hostName(0)} (while the server is ACTIVE, PAUSED, SHUTOFF, VERIFY_RESIZE, SHELVED, SOFT_DELETED, ERROR)`,
  ]);
  await operate("settle-volume", ["pivoting"]);
  expect(await findings()).toEqual([]);
  await pool.query("update tasks set outcome = 'cancelled', ended_at = now() where outcome is null");
  await pool.query("update servers set task_state = null");
  expect(await findings()).toHaveLength(1);
  await pool.query("update tasks set operation = 'swap-volume-unconfirmed' where operation = 'swap-volume'");
  expect(await findings()).toHaveLength(1);
  await operate("settle-volume", ["calling-off", "succeed"]);
  expect(await findings()).toEqual([]);
});
