import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serverId, serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { KeptPlans, type Plan, rowsReadBy } from "../../../test/rigs/kept-plans.ts";
import { createPool } from "../client/pool.ts";
import { listRequests } from "./list-requests.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";

const SERVERS = 3_000;
const OPEN = 5;
/** After as many executions, Postgres may keep a plan that is made without the values of the parameters. */
const EXECUTIONS = 8;

let database: TestDatabase;
let pool: Pool;
let store: PostgresApiStore;
let plans: KeptPlans;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "open plans test", connectionsMax: 1, findsByKeys: true });
  store = new PostgresApiStore(pool);
  await store.accept(Array.from({ length: SERVERS }, (_, at) => serverSpec(at)));
  // The statistics are those of a busy moment, after which few requests are left open.
  for (const table of ["requests", "open_requests"]) await pool.query(`vacuum analyze ${table}`);
  await pool.query("delete from open_requests where server_uuid <> all ($1)", [
    Array.from({ length: OPEN }, (_, at) => serverId(at * 100)),
  ]);
  plans = new KeptPlans(pool);
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

const indexesOf = (plan: Plan): readonly unknown[] =>
  [plan["Index Name"] ?? [], (plan.Plans ?? []).map(indexesOf)].flat(9);

test.each([
  ["newest-first", null],
  ["newest-first", "project"],
  ["oldest-first", null],
  ["oldest-first", "project"],
] as const)("a kept plan of the open requests after a marker reads no others (%s, project %s)", async (order, of) => {
  const [first] = await listRequests(pool, { projectId: null, marker: null, limit: 1, order });
  const projectId = of && (first?.spec.projectId ?? "");
  const query = { projectId, marker: first?.serverUuid ?? null, limit: 1_000, order, open: true } as const;
  const page = await listRequests(plans.pool, query);
  expect(page.length).toBeGreaterThan(0);
  for (let execution = 1; execution < EXECUTIONS; execution += 1)
    expect(await listRequests(plans.pool, query)).toEqual(page);
  const plan = await plans.last();
  expect(rowsReadBy(plan)).toBeLessThanOrEqual(2 * OPEN);
  expect(indexesOf(plan)).toEqual(["requests_pkey"]);
});

/** Fails two requests that are not open, as the statistics do not know. */
const failed = [serverId(1_050), serverId(2_050)];

test.each([
  ["newest-first", null],
  ["oldest-first", "project"],
] as const)("a kept plan of the open and the failed requests reads no others (%s, project %s)", async (order, of) => {
  await pool.query("update requests set fault = 'x', state = 'failed' where server_uuid = any ($1)", [failed]);
  const [first] = await listRequests(pool, { projectId: null, marker: null, limit: 1, order });
  const query = {
    ...{ projectId: of && (first?.spec.projectId ?? ""), marker: null, limit: 1_000, order },
    ...({ open: true, failed: true } as const),
  } as const;
  const page = await listRequests(plans.pool, query);
  expect(page.map(({ serverUuid }) => serverUuid).toSorted()).toEqual(
    [...Array.from({ length: OPEN }, (_, at) => serverId(at * 100)), ...failed].toSorted(),
  );
  expect(page.map(({ createdAtMs }) => createdAtMs)).toEqual(
    page.map(({ createdAtMs }) => createdAtMs).toSorted((a, b) => (order === "oldest-first" ? a - b : b - a)),
  );
  for (let execution = 1; execution < EXECUTIONS; execution += 1)
    expect(await listRequests(plans.pool, query)).toEqual(page);
  const plan = await plans.last();
  expect(rowsReadBy(plan)).toBeLessThanOrEqual(2 * (OPEN + failed.length));
  expect(indexesOf(plan)).toContain("requests_pkey");
});

test("very many open requests and the failed ones are listed in one order", async () => {
  await pool.query(
    "insert into open_requests (server_uuid, updated_at, state) select server_uuid, now(), state from requests where fault is null on conflict do nothing",
  );
  const all = await listRequests(pool, { projectId: null, marker: null, limit: SERVERS + 1 });
  const either = { open: true, failed: true, projectId: null, marker: null } as const;
  expect(await listRequests(pool, { ...either, limit: SERVERS + 1 })).toEqual(all);
  const marker = all[SERVERS / 2]!.serverUuid;
  expect(await listRequests(pool, { ...either, marker, limit: 10 })).toEqual(all.slice(SERVERS / 2 + 1).slice(0, 10));
});
