import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ChangesQuery } from "../../../core/stores/cell/cell-store.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { changesSince, serverId, serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";
import { changesStatement } from "./read-changed-servers.ts";

const SERVERS = 3_000;
const LOOKS = 10;
const FIRST_MS = 1_700_000_000_000;
/** The n-th server was changed at this time. */
const changedAt = (server: number) => FIRST_MS + (server + 1) * 1_000;

let database: TestDatabase;
let pool: Pool;
let store: PostgresCellStore;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "changes test", connectionsMax: 2 });
  store = new PostgresCellStore(pool);
  const specs = Array.from({ length: SERVERS }, (_, at) =>
    Buffer.from(ServerSpec.encode(serverSpec(at, { projectId: at % 2 === 0 ? "even" : "odd" })).finish()),
  );
  await pool.query(
    `insert into servers (uuid, status, spec, project_id, user_id, name, created_at, updated_at, deleted_at)
     select uuid, case n when 1 then 'DELETED' when 3 then 'SOFT_DELETED' else 'ACTIVE' end, spec,
       case when n % 2 = 1 then 'even' else 'odd' end, 'ann', 'web', to_timestamp($3::float8 / 1000),
       to_timestamp($3::float8 / 1000) + n * interval '1 s', case n when 1 then now() end
     from unnest($1::uuid[], $2::bytea[]) with ordinality as s (uuid, spec, n)`,
    [Array.from({ length: SERVERS }, (_, at) => serverId(at)), specs, FIRST_MS],
  );
  await pool.query(
    "insert into unusual_servers (server_uuid, status, created_at, project_id) select uuid, status, created_at, project_id from servers where uuid = $1",
    [serverId(2)],
  );
  await pool.query("vacuum analyze servers");
  await pool.query("vacuum analyze unusual_servers");
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

type Plan = { readonly [key: string]: unknown; readonly Plans?: readonly Plan[] };

async function planOf(query: ChangesQuery): Promise<Plan> {
  const { text, values } = changesStatement(query);
  const { rows } = await pool.query({ text: `explain (analyze, format json) ${text}`, values: [...values] });
  return rows[0]["QUERY PLAN"][0].Plan;
}

/** The most rows that a node of the plan, or a node that uses the index, has read. */
function rowsRead(plan: Plan, index?: string): number {
  const removed = Number(plan["Rows Removed by Filter"] ?? 0) + Number(plan["Rows Removed by Index Recheck"] ?? 0);
  const own = (Number(plan["Actual Rows"]) + removed) * Number(plan["Actual Loops"]);
  const isCounted = index === undefined || plan["Index Name"] === index;
  return Math.max(isCounted ? own : 0, ...(plan.Plans ?? []).map((part) => rowsRead(part, index)));
}

const all: ChangesQuery = { ...changesSince(0), looksMax: LOOKS };

test.each<[string, ChangesQuery]>([
  ["since ever", all],
  ["since long ago", { ...all, sinceMs: changedAt(SERVERS / 2) }],
  ["until lately", { ...all, beforeMs: changedAt(SERVERS - 2) }],
  ["of another project since ever", { ...all, projectId: "none" }],
])("changes %s are too many after as many looks as are allowed", async (_title, query) => {
  expect(await store.serversChanged(query)).toEqual({ kind: "too-many" });
  const plan = await planOf({ ...query, sinceMs: query.sinceMs && FIRST_MS });
  expect(rowsRead(plan)).toBeLessThanOrEqual(LOOKS + 1);
  // Not one of them is read whole.
  expect(rowsRead(plan, "servers_pkey")).toBe(0);
});

test("a few changes are found without a look at all servers, however often all were asked for before", async () => {
  for (let execution = 0; execution < 8; execution += 1) await store.serversChanged(all);
  const query = { ...all, sinceMs: changedAt(SERVERS - 2) };
  const found = await store.serversChanged(query);
  expect(found.kind === "found" && found.servers.map(({ uuid }) => uuid)).toEqual(
    [SERVERS - 2, SERVERS - 1].map(serverId),
  );
  expect(rowsRead(await planOf(query))).toBeLessThan(SERVERS / 4);
  const odd = await store.serversChanged({ ...query, projectId: "odd" });
  expect(odd.kind === "found" && odd.servers.map(({ uuid }) => uuid)).toEqual([serverId(SERVERS - 1)]);
});

test("deleted servers are found without a look at the others", async () => {
  const query = { ...all, deleted: true };
  const found = await store.serversChanged(query);
  expect(found.kind === "found" && found.servers.map(({ uuid }) => uuid)).toEqual([0, 2].map(serverId));
  expect(rowsRead(await planOf(query))).toBeLessThanOrEqual(LOOKS);
  expect(await store.serversChanged({ ...query, sinceMs: changedAt(3) })).toEqual({ kind: "found", servers: [] });
});

test("a search that takes longer than it may ends, and its connection is good for the next one", async () => {
  const blocker = await pool.connect();
  try {
    await blocker.query("begin");
    await blocker.query("lock table servers in access exclusive mode");
    expect(await store.serversChanged({ ...all, msMax: 50 })).toEqual({ kind: "too-slow" });
  } finally {
    await blocker.query("rollback");
    blocker.release();
  }
  expect(await store.serversChanged({ ...all, sinceMs: changedAt(SERVERS) })).toEqual({ kind: "found", servers: [] });
  expect((await pool.query("show statement_timeout")).rows).toEqual([{ statement_timeout: "30s" }]);
});
