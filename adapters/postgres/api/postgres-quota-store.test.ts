import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serverId, serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { classLimitsContract } from "../../../test/contract/class-limits.contract.ts";
import { AT_A_TIME, quotaStoreContract, UNLIMITED } from "../../../test/contract/quota-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresQuotaStore } from "./postgres-quota-store.ts";

let database: TestDatabase;
let pools: readonly [Pool, Pool];
beforeAll(async () => {
  database = await freshDatabase("api");
  const open = (name: string) =>
    createPool({ url: database.url, applicationName: name, connectionsMax: AT_A_TIME, findsByKeys: true });
  pools = [open("quota store test"), open("another api of the quota store test")];
});
afterAll(async () => {
  for (const pool of pools) await pool.end();
  await database.drop();
});

const makeSubject = async () => {
  const [pool, other] = pools;
  await emptyTables(pool, [
    "quotas",
    "quota_classes",
    "quota_usages",
    "quota_class_usages",
    "class_recounts",
    "charged_resizes",
    "open_requests",
    "requests",
  ]);
  return {
    store: new PostgresQuotaStore(pool),
    requests: [new PostgresApiStore(pool), new PostgresApiStore(other)] as const,
    close: async () => undefined,
  };
};

quotaStoreContract("Postgres", makeSubject);
classLimitsContract("Postgres", makeSubject);

test("what an older process has deleted without giving its classes back is found by the project's next decision", async () => {
  const { store, requests } = await makeSubject();
  const spec = (number: number) => serverSpec(number, { projectId: "p" });
  const decide = (number: number, limit: number) =>
    requests[0].acceptWithin([[spec(number)]], {
      ...{ openMax: null, quotas: UNLIMITED },
      stated: new Map([["p", { ...UNLIMITED, classes: new Map([["DISK_GB", limit]]) }]]),
    });
  await decide(1, 2);
  await decide(2, 2);
  await pools[0].query("update requests set gone = true, state = 'cancelled' where server_uuid = $1", [serverId(1)]);
  await pools[0].query(
    "update quota_usages set instances = instances - 1 where ctid = (select ctid from quota_usages limit 1)",
  );
  expect(await decide(3, 2)).toEqual([{ kind: "accepted" }]);
  expect((await store.usage("p", { withClasses: true })).ofProject.classes?.get("DISK_GB")).toBe(2);
});

test("a server that is counted later than it was accepted is looked at in its cell, since it may have been resized", async () => {
  const { store, requests } = await makeSubject();
  await requests[0].accept([serverSpec(1, { projectId: "p" }), serverSpec(2, { projectId: "p" })]);
  await requests[0].assignCells([{ serverUuid: serverId(1), from: null, to: "c-1" }]);
  const stated = new Map([["p", UNLIMITED]]);
  await requests[0].acceptWithin([[serverSpec(3, { projectId: "p" })]], { openMax: null, quotas: UNLIMITED, stated });
  expect(await store.chargedResizes(0, 10)).toEqual([{ serverUuid: serverId(1), version: 1 }]);
});
