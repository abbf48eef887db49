import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serverId } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { KeptPlans } from "../../../test/rigs/kept-plans.ts";
import { createPool } from "../client/pool.ts";
import { PostgresPortStore } from "./postgres-port-store.ts";
import { PostgresSecurityGroups } from "./postgres-security-groups.ts";
import { PostgresServerGroupStore } from "./postgres-server-group-store.ts";

const ROWS = 3_000;
const PROJECTS = 300;

let database: TestDatabase;
let pool: Pool;
let plans: KeptPlans;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "kept plans test", connectionsMax: 1 });
  plans = new KeptPlans(pool);
  const uuids = Array.from({ length: ROWS }, (_, at) => serverId(at));
  const fill = (text: string) => pool.query(`${text} from unnest($1::uuid[]) with ordinality as r (uuid, n)`, [uuids]);
  const project = `'project-' || n % ${PROJECTS}`;
  await fill(`insert into server_groups (uuid, name, project_id, user_id, policy)
    select uuid, 'group-' || n, ${project}, 'ann', 'affinity'`);
  await fill(
    `insert into security_groups (id, project_id, name, description) select uuid, ${project}, 'group-' || n, ''`,
  );
  await fill(`insert into ports (id, project_id, network_id, name, groups, created_at_ms, server_uuid, address)
    select uuid, ${project}, 'net', 'port-' || n, '[]', n, uuid, '10.0.0.0'::inet + n`);
  await pool.query("vacuum analyze server_groups, security_groups, ports");
  await pool.query("set plan_cache_mode = force_generic_plan");
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

test("a kept plan of a project's server groups reads no groups of other projects", async () => {
  const store = new PostgresServerGroupStore(plans.pool);
  expect(await store.groups({ projectId: "project-7", limit: 100, offset: 0 })).toHaveLength(ROWS / PROJECTS);
  expect(await plans.rowsRead()).toBeLessThanOrEqual(ROWS / PROJECTS);
  expect(await store.groups({ projectId: null, limit: 10, offset: 5 })).toHaveLength(10);
});

test("a kept plan of a project's security groups, or of some, reads no others", async () => {
  const groups = new PostgresSecurityGroups(plans.pool);
  for (const withoutRules of [false, true]) {
    expect(await groups.groups({ projectId: "project-7", withoutRules })).toHaveLength(ROWS / PROJECTS);
    expect(await plans.rowsRead()).toBeLessThanOrEqual(ROWS / PROJECTS);
    expect(await groups.groups({ ids: [serverId(7), serverId(8)], withoutRules })).toHaveLength(2);
    expect(await plans.rowsRead()).toBeLessThanOrEqual(2);
    expect(await groups.groups({ projectId: "project-8", ids: [serverId(7)], withoutRules })).toHaveLength(1);
    expect(await groups.groups({ projectId: "project-9", ids: [serverId(7)], withoutRules })).toEqual([]);
  }
});

test("a kept plan of the ports of a project, of a server, or with an address reads no others", async () => {
  const store = new PostgresPortStore(plans.pool);
  const page = { limit: 100 };
  expect(await store.listPorts({ projectId: "project-7", ...page })).toHaveLength(ROWS / PROJECTS);
  expect(await plans.rowsRead()).toBeLessThanOrEqual(ROWS / PROJECTS);
  for (const one of [{ id: serverId(7) }, { serverUuid: serverId(7) }, { networkId: "net", address: "10.0.0.8" }]) {
    expect(await store.listPorts({ projectId: null, ...one, ...page })).toMatchObject([{ id: serverId(7) }]);
    expect(await plans.rowsRead()).toBeLessThanOrEqual(1);
    expect(await store.listPorts({ projectId: "project-8", name: "port-8", ...one, ...page })).toHaveLength(1);
    expect(await store.listPorts({ projectId: "project-9", ...one, ...page })).toEqual([]);
  }
  expect(await store.listPorts({ projectId: null, ...page })).toHaveLength(100);
});
