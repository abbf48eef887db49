import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AttributeQuery, SketchPart } from "../../../core/stores/cell/listed-servers.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { serverId, serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { KeptPlans } from "../../../test/rigs/kept-plans.ts";
import { createPool } from "../client/pool.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";

const SERVERS = 3_000;
const RARE = 20;
const HOSTS = 100;
const PAGE = 5;
/** After as many executions, Postgres may keep a plan that is made without the values of the parameters. */
const EXECUTIONS = 8;
const FIRST_MS = 1_700_000_000_000;
const requestId = (at: number) => `req-00000000-0000-4000-8000-${String(at).padStart(12, "0")}`;

let database: TestDatabase;
let pool: Pool;
let store: PostgresCellStore;
let plans: KeptPlans;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "list plans test", connectionsMax: 1 });
  const specs = Array.from({ length: SERVERS }, (_, at) => {
    const isRare = at % (SERVERS / RARE) === 0;
    const spec = serverSpec(at, {
      ...{ userId: "ann", keyName: `key-${at % 3}`, imageRef: isRare ? "rare" : "usual", requestId: requestId(at) },
    });
    return Buffer.from(ServerSpec.encode(spec).finish());
  });
  await pool.query(
    `insert into servers (uuid, status, spec, project_id, user_id, name, host, created_at)
     select uuid, 'ACTIVE', spec, case when n % 2 = 0 then 'even' else 'odd' end, 'ann', 'web', 'host-' || n % ${HOSTS}, to_timestamp($3::float8 / 1000) + n * interval '1 s'
     from unnest($1::uuid[], $2::bytea[]) with ordinality as s (uuid, spec, n)`,
    [Array.from({ length: SERVERS }, (_, at) => serverId(at)), specs, FIRST_MS],
  );
  await pool.query("vacuum analyze servers");
  plans = new KeptPlans(pool);
  store = new PostgresCellStore(plans.pool);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const user = { attribute: "user", value: "ann" } as const;
const image = { attribute: "image", value: "rare" } as const;
const key = { attribute: "key", value: "key-0", otherValues: ["key-1"] } as const;
const onHosts = { attribute: "host", value: "x", orNone: true } as const;
const middle = { uuid: serverId(SERVERS / 2), createdAtMs: FIRST_MS + (SERVERS / 2 + 1) * 1_000 };

test.each<[string, Pick<AttributeQuery, "attribute" | "value" | "otherValues" | "others">]>([
  ["a user", user],
  ["an image", image],
  ["two names of keys", key],
  ["a user, an image and two names of keys", { ...user, others: [image, key] }],
  ["an image and a user", { ...image, others: [user] }],
])("a kept plan of a page by %s reads what it looks at", async (_title, query) => {
  for (const projectId of [null, "even"])
    for (const oldestFirst of [false, true])
      for (const after of [null, middle]) {
        const page = { ...query, projectId, oldestFirst, after, looksMax: PAGE, limit: PAGE };
        for (let execution = 0; execution < EXECUTIONS; execution += 1)
          expect(await store.serversByAttribute(page)).toHaveProperty("resumeAt.uuid");
        // Each of two values has a list of its own.
        expect(await plans.rowsRead()).toBeLessThanOrEqual(2 * PAGE);
      }
});

test("a kept plan of a page of three names of keys reads the first entries of each list, and not a page of each", async () => {
  const names = { attribute: "key", value: "key-0", otherValues: ["key-1", "key-2"] } as const;
  const page = { ...names, projectId: null, oldestFirst: false, after: null, looksMax: SERVERS, limit: 100 };
  for (let execution = 0; execution < EXECUTIONS; execution += 1)
    expect((await store.serversByAttribute(page)).servers).toHaveLength(100);
  const entries = await plans.rowsRead((plan) => plan["Index Name"] === "servers_key");
  expect(entries).toBeGreaterThanOrEqual(100);
  // Twice the servers of the page, and no page of each of the three lists.
  expect(entries).toBeLessThanOrEqual(3 * Math.ceil(200 / 3));
});

test("a kept plan of a page of the servers of many hosts reads their places in the index, and only the servers of the page", async () => {
  const [value = "", ...otherValues] = Array.from({ length: HOSTS / 2 }, (_, at) => `host-${at * 2}`);
  for (const projectId of [null, "even"])
    for (const after of [null, middle]) {
      const query = { attribute: "host", value, otherValues, projectId, oldestFirst: false, after } as const;
      for (let execution = 0; execution < EXECUTIONS; execution += 1) {
        const { servers } = await store.serversByAttribute({ ...query, looksMax: PAGE, limit: PAGE });
        expect(servers).toHaveLength(PAGE);
      }
      expect(await plans.rowsRead((plan) => plan["Index Name"] === "servers_listed_by_host")).toBeLessThanOrEqual(
        (HOSTS / 2) * PAGE,
      );
      expect(await plans.rowsRead((plan) => plan["Index Name"] === "servers_pkey")).toBe(PAGE);
      expect(await plans.rowsRead((plan) => plan["Node Type"] === "Seq Scan")).toBe(0);
    }
});

test("a kept plan of the names of keys reads one server of each, and from then on only of those that are asked for", async () => {
  const asked = { attribute: "key", contains: "1", looksMax: PAGE } as const;
  const serversRead = () => plans.rowsRead((plan) => plan["Index Name"] === "servers_key");
  expect(await store.attributeValues(asked)).toEqual(["key-1"]);
  expect(await serversRead()).toBeLessThanOrEqual(3);
  for (let execution = 0; execution < EXECUTIONS; execution += 1) {
    expect(await store.attributeValues(asked)).toEqual(["key-1"]);
    expect(await serversRead()).toBeLessThanOrEqual(1);
  }
  expect(await plans.rowsRead((plan) => plan["Node Type"] === "Seq Scan")).toBe(0);
});

test("a kept plan of sketches reads no servers with other values, and none at all when these are too many", async () => {
  const rare = { ...image, others: [], looksMax: RARE, parts: ["host"], specFields: ["name"] } as const;
  const ofProject = { ...rare, projectId: "odd", others: [user] };
  for (let execution = 0; execution < EXECUTIONS; execution += 1) {
    expect(await store.serverSketches({ ...rare, projectId: null })).toHaveLength(RARE);
    expect(await plans.rowsRead()).toBeLessThanOrEqual(RARE);
    expect(await store.serverSketches(ofProject)).toHaveLength(RARE);
    expect(await plans.rowsRead()).toBeLessThanOrEqual(RARE);
    expect(await store.serverSketches({ ...rare, ...key, projectId: null, looksMax: PAGE })).toBeNull();
    expect(await plans.rowsRead()).toBeLessThanOrEqual(2 * (PAGE + 1));
  }
});

test("a kept plan of a list by a reservation reads no other servers", async () => {
  const query = {
    attribute: "reservation",
    value: requestId(7).slice(30),
    projectId: null,
    oldestFirst: false,
  } as const;
  for (const after of [null, { ...middle, createdAtMs: middle.createdAtMs * 2 }]) {
    for (let execution = 0; execution < EXECUTIONS; execution += 1) {
      const { servers } = await store.serversByAttribute({ ...query, after, looksMax: PAGE, limit: PAGE });
      expect(servers.map(({ uuid }) => uuid)).toEqual([serverId(7)]);
    }
    expect(await plans.rowsRead()).toBeLessThanOrEqual(PAGE);
  }
});

test("a kept plan of a list of migrations reads those of the host, of the server, or of the page", async () => {
  await pool.query("set session_replication_role = replica");
  await pool.query(
    `insert into migrations (uuid, server_uuid, kind, status, source_host, dest_host, dest_attempt_id, ended, runs, created_at)
     select uuid, uuid, 'live-migration', 'completed', 'host-' || n % 100, 'host-' || (n + 7) % 100, 'x/0', n % 500 <> 1, true,
       to_timestamp($2::float8 / 1000) + n * interval '1 s'
     from unnest($1::uuid[]) with ordinality as s (uuid, n)`,
    [Array.from({ length: SERVERS }, (_, at) => serverId(at)), FIRST_MS],
  );
  await pool.query("set session_replication_role = default");
  await pool.query("vacuum analyze migrations");
  const after = serverId(SERVERS / 2);
  for (const query of [
    ...[{}, { host: "host-3" }, { serverUuid: after }, { inFlightOnly: true }, { uuids: [after] }],
    ...[{ after }, { host: "host-3", after }, { untilMs: FIRST_MS + 1_000_000 }],
  ]) {
    for (let execution = 0; execution < EXECUTIONS; execution += 1) await store.migrations({ ...query, limit: PAGE });
    // A host has a list of the migrations from it and one of those to it.
    expect([query, (await plans.rowsRead()) <= 2 * PAGE]).toEqual([query, true]);
  }
});

test("a list by any filters, with any others, is read on a connection that has read every other one", async () => {
  const all = (["image", "reservation", "user", "flavor", "key"] as const).map((attribute) => ({
    attribute,
    value: "x",
  }));
  const after = { uuid: serverId(1), createdAtMs: FIRST_MS };
  for (const lead of all)
    for (const left of [null, ...all.filter((one) => one !== lead)]) {
      const others = all.filter((one) => one !== lead && one !== left);
      const asked = { ...lead, others, projectId: "even", oldestFirst: true, after, looksMax: PAGE, limit: PAGE };
      expect(await store.serversByAttribute(asked)).toEqual({ servers: [], resumeAt: null });
    }
});

test("sketches with any parts, by any filters, are read on a connection that has read every other one", async () => {
  const every: readonly SketchPart[] = ["status", "host", "updatedAt", "launchedAt"];
  const lists = [[], ...every.map((part) => [part]), every].flatMap(
    (parts) =>
      [
        [parts, []],
        [parts, ["name"]],
      ] as const,
  );
  const others = (["status", "reservation", "user", "flavor", "key"] as const).map((one) => ({
    attribute: one,
    value: "x",
  }));
  for (const [parts, specFields] of lists)
    for (const some of [[], ...others.map((other) => [other]), others])
      for (const projectId of [null, "even"])
        for (const lead of [{ attribute: "image", value: "x" } as const, onHosts])
          expect(
            await store.serverSketches({ ...lead, others: some, projectId, looksMax: PAGE, parts, specFields }),
          ).toEqual([]);
});

test("a plan made without the values reads what a page looks at, too", async () => {
  await pool.query("set plan_cache_mode = force_generic_plan");
  try {
    for (const query of [user, image, key, { ...user, others: [image] }]) {
      await store.serversByAttribute({
        ...query,
        projectId: null,
        oldestFirst: false,
        after: null,
        looksMax: PAGE,
        limit: PAGE,
      });
      expect(await plans.rowsRead()).toBeLessThanOrEqual(2 * PAGE);
    }
    await store.serversOfPeriod({
      ...{ beginMs: FIRST_MS, endMs: Date.now(), projectId: null, after: null, rows: PAGE },
    });
    expect(await plans.rowsRead()).toBeLessThanOrEqual(2 * PAGE);
    const ofProject = { beginMs: FIRST_MS, endMs: Date.now(), projectId: "even", after: null, rows: PAGE };
    expect(await store.serversOfPeriod(ofProject)).toHaveProperty("resumeAt");
    expect(await plans.rowsRead()).toBeLessThanOrEqual(2 * PAGE);
  } finally {
    await pool.query("reset plan_cache_mode");
  }
});
