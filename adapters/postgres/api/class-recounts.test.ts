import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { countedAmounts } from "../../../core/stores/api/counted-amounts.ts";
import { serverId, serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { UNLIMITED } from "../../../test/contract/quota-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresQuotaStore } from "./postgres-quota-store.ts";
import { PostgresSoftDeletionStore } from "./postgres-soft-deletion-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "class recounts", connectionsMax: 8, findsByKeys: true });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});
beforeEach(async () => {
  await emptyTables(pool, [
    "quota_usages",
    "quota_class_usages",
    "class_recounts",
    "charged_resizes",
    "soft_deletions",
    "open_requests",
    "requests",
  ]);
});

const flavor = (diskGib: number) => ({
  ...{ id: "1", name: "f", vcpus: 2, memoryMib: 512, diskGib, ephemeralGib: 0, swapMib: 0 },
  extraSpecs: {},
});
const spec = (number: number, diskGib: number) =>
  serverSpec(number, { projectId: "p", userId: "ann", flavor: flavor(diskGib) });
const stated = (limit: number) => ({ ...UNLIMITED, classes: new Map([["DISK_GB", limit]]) });
const caller = { userId: "ann", projectId: "p", isAdmin: false, requestId: "req-1" };

function stores() {
  const [quotas, requests, deletions] = [
    new PostgresQuotaStore(pool),
    new PostgresApiStore(pool),
    new PostgresSoftDeletionStore(pool),
  ];
  const decide = async (number: number, diskGib: number, limit = 100) => {
    const limits = { openMax: null, quotas: UNLIMITED, stated: new Map([["p", stated(limit)]]) };
    return (await requests.acceptWithin([[spec(number, diskGib)]], limits)).map(({ kind }) => kind);
  };
  const disk = async () => (await quotas.usage("p", { withClasses: true })).ofProject.classes?.get("DISK_GB");
  const dispatch = (number: number) => requests.assignCells([{ serverUuid: serverId(number), from: null, to: "c-1" }]);
  return { quotas, requests, deletions, decide, disk, dispatch };
}

/** What an api of an earlier version writes, which counts no classes. */
const old = {
  count: (by: 1 | -1) =>
    pool.query(
      `update quota_usages set instances = instances + $1, cores = cores + 2 * $1, ram_mib = ram_mib + 512 * $1
       where ctid = (select ctid from quota_usages limit 1)`,
      [by],
    ),
  async remove(number: number) {
    await pool.query("update requests set gone = true, state = 'cancelled' where server_uuid = $1", [serverId(number)]);
    await old.count(-1);
  },
  async restore(number: number) {
    await pool.query("update requests set gone = false where server_uuid = $1", [serverId(number)]);
    await old.count(1);
  },
  settle: (number: number) => pool.query("delete from charged_resizes where server_uuid = $1", [serverId(number)]),
};

test.each([
  ["a large server for a small one", 90, 1, 20, "accepted", 21],
  ["a small server for a large one", 1, 90, 60, "over-quota", 90],
])(
  "an older api deletes and accepts, %s: the next decision counts anew",
  async (_, first, second, third, kind, sum) => {
    const { requests, decide, disk } = stores();
    await decide(1, first);
    await old.remove(1);
    await requests.accept([spec(2, second)]);
    expect(await decide(3, third)).toEqual([kind]);
    expect(await disk()).toBe(sum);
    // The notes are used up: a later decision reads the sums alone.
    expect((await pool.query("select from class_recounts")).rowCount).toBe(0);
  },
);

test("an older api deletes a server and restores another: the next decision counts anew", async () => {
  const { deletions, decide, disk, dispatch } = stores();
  await decide(1, 1);
  await decide(2, 90);
  await dispatch(2);
  await deletions.deleteSoftly(serverId(2), caller);
  expect((await pool.query("select from class_recounts")).rowCount).toBe(0);
  await old.remove(1);
  await old.restore(2);
  expect(await decide(3, 11)).toEqual(["over-quota"]);
  expect(await disk()).toBe(90);
});

test("deletions and restores of this version leave nothing to count anew", async () => {
  const { quotas, requests, deletions, decide, disk, dispatch } = stores();
  await decide(1, 5);
  await decide(2, 6);
  await dispatch(1);
  await deletions.deleteSoftly(serverId(1), caller);
  await deletions.restore(serverId(1), { askedBy: caller, defaults: UNLIMITED, stated: stated(100) });
  await deletions.deleteSoftly(serverId(1), caller);
  await requests.cancel(serverId(1), "req");
  await dispatch(2);
  await quotas.chargeResize({ serverUuid: serverId(2), amounts: countedAmounts(spec(2, 8)) }, UNLIMITED, stated(100));
  const [note] = await quotas.chargedResizes(0, 10);
  await quotas.settleResize(note!, countedAmounts(spec(2, 8)));
  await requests.cancel(serverId(2), "req");
  expect((await pool.query("select from class_recounts")).rowCount).toBe(0);
  expect(await disk()).toBe(0);
});

test("a resize that an older api settles is settled again after the next decision", async () => {
  const { quotas, decide, disk, dispatch } = stores();
  await decide(1, 5);
  await dispatch(1);
  await quotas.chargeResize({ serverUuid: serverId(1), amounts: countedAmounts(spec(1, 50)) }, UNLIMITED, stated(100));
  await old.settle(1);
  expect(await quotas.chargedResizes(0, 10)).toEqual([]);
  await decide(2, 1);
  const [note] = await quotas.chargedResizes(0, 10);
  expect(note?.serverUuid).toBe(serverId(1));
  await quotas.settleResize(note!, countedAmounts(spec(1, 5)));
  expect(await disk()).toBe(6);
});

test("a charge that this version leaves alone, since the server is deleted softly, is noted when an older api drops it", async () => {
  const { quotas, deletions, decide, dispatch } = stores();
  await decide(1, 5);
  await dispatch(1);
  await quotas.chargeResize({ serverUuid: serverId(1), amounts: countedAmounts(spec(1, 50)) }, UNLIMITED, stated(100));
  await deletions.deleteSoftly(serverId(1), caller);
  const [note] = await quotas.chargedResizes(0, 10);
  await quotas.settleResize(note!, countedAmounts(spec(1, 5)));
  await old.settle(1);
  expect((await pool.query("select from class_recounts")).rowCount).toBe(1);
});

test("a server that was deleted softly before classes were counted is looked at in its cell after it is restored", async () => {
  const { quotas, requests, deletions, disk, dispatch } = stores();
  await requests.accept([spec(1, 5)]);
  await dispatch(1);
  await deletions.deleteSoftly(serverId(1), caller);
  const restored = { askedBy: caller, defaults: UNLIMITED, stated: stated(100) };
  expect((await deletions.restore(serverId(1), restored)).kind).toBe("restoring");
  expect(await quotas.chargedResizes(0, 10)).toEqual([{ serverUuid: serverId(1), version: 1 }]);
  expect(await disk()).toBe(5);
});

test.each([1, 3])(
  "a restore of server %i that counts its project anew waits for a delete of it and server 2 without a deadlock",
  async (number) => {
    const { requests, deletions, dispatch } = stores();
    await requests.accept([spec(number, 5), spec(2, 6)]);
    await dispatch(number);
    await deletions.deleteSoftly(serverId(number), caller);
    const [first, second] = [serverId(number), serverId(2)].toSorted();
    // The delete has locked the first of both servers, and comes to the second one.
    const deleting = await pool.connect();
    const lock = (uuid: string | undefined) =>
      deleting.query("select from requests where server_uuid = $1 for no key update nowait", [uuid]);
    try {
      await deleting.query("begin");
      await lock(first);
      const restoring = deletions.restore(serverId(number), {
        ...{ askedBy: caller, defaults: UNLIMITED, stated: stated(100) },
      });
      const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
      await eventually("the restore waits", async () => (await pool.query(waiting)).rowCount === 1);
      expect((await lock(second)).rowCount).toBe(1);
      await deleting.query("rollback");
      expect((await restoring).kind).toBe("restoring");
    } finally {
      await deleting.query("rollback");
      deleting.release();
    }
  },
);
