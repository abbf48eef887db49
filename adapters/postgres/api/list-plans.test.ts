import type { Pool, QueryConfig } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serverId, serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";

const SERVERS = 5_000;
const MARKED = 20;

let database: TestDatabase;
let pool: Pool;
let store: PostgresApiStore;
const asked: QueryConfig[] = [];
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "list plans test" });
  const noted = new Proxy(pool, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (name !== "query") return typeof member === "function" ? member.bind(target) : member;
      return (query: QueryConfig) => {
        asked.push(query);
        return target.query(query);
      };
    },
  });
  store = new PostgresApiStore(noted);
  await store.accept(
    Array.from({ length: SERVERS }, (_, at) =>
      serverSpec(
        at,
        at % (SERVERS / MARKED) === 0 ? { tags: ["rare"], name: `a-rare-name-ü-${at}` } : { name: `web-${at}` },
      ),
    ),
  );
  for (let at = 1; at <= MARKED; at += 1)
    await store.changeServer(serverId(at), () => ({ lock: { by: "owner", reason: null }, description: "changed" }));
  await store.failRequests(
    Array.from({ length: MARKED }, (_, at) => ({
      serverUuid: serverId(at + 100),
      cell: null,
      fault: "No valid host.",
    })),
  );
  await pool.query("vacuum analyze requests");
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

/** The rows that each node of the plan of the last statement has read. */
async function rowsRead(): Promise<number> {
  const query = asked.at(-1);
  const { rows } = await pool.query({
    text: `explain (analyze, format json) ${query?.text}`,
    values: query?.values ?? [],
  });
  type Plan = { readonly [key: string]: unknown; readonly Plans?: readonly Plan[] };
  const read = (plan: Plan): number =>
    Math.max(
      Number(plan["Actual Rows"]) +
        Number(plan["Rows Removed by Filter"] ?? 0) +
        Number(plan["Rows Removed by Index Recheck"] ?? 0),
      ...(plan.Plans ?? []).map((part) => read(part)),
    );
  return read(rows[0]["QUERY PLAN"][0].Plan);
}

test.each([
  ["tagged", { tags: { all: ["rare"], any: [] } }],
  ["locked", { locked: true } as const],
  ["failed", { failed: true } as const],
  ["named", { nameContains: "rare-na" }],
  ["changed", { changed: true } as const],
  ["named in any case", { hasWord: "rare" }],
  ["oddly named", { oddlyNamed: true } as const],
])("a list of %s servers reads no others", async (_title, filter) => {
  const found = await store.listRequests({ projectId: null, marker: null, limit: 1_000, ...filter });
  expect(found).toHaveLength(MARKED);
  // Those that are tagged and those that are changed in another way may have one index.
  expect(await rowsRead()).toBeLessThanOrEqual(2 * MARKED);
});

test("the database is not asked for the requests of no servers", async () => {
  const before = asked.length;
  expect(await store.requests([])).toEqual([]);
  expect(asked).toHaveLength(before);
});

test("the changes of many servers are read without a look at those that nobody has changed", async () => {
  expect((await store.changesOf(Array.from({ length: SERVERS }, (_, at) => serverId(at)))).size).toBe(2 * MARKED);
  expect(await rowsRead()).toBeLessThanOrEqual(2 * MARKED);
  expect(await store.changesOf([])).toEqual(new Map());
});

test("a name is rare when the index finds few servers by its rarest word", async () => {
  for (const [name, isRare] of [
    ["rare-name", true],
    ["web", false],
    ["web-4321", true],
    ["web-rare", true],
  ] as const)
    expect([name, await store.isRareName(name)]).toEqual([name, isRare]);
});

test("a scan by names reads no more than it looks at, and ends when it has found enough", async () => {
  const scan = { projectId: null, marker: null, rows: 500 };
  const { records, resumeAt } = await store.scanRequests({ ...scan, named: { contains: "web", limit: 10 } });
  expect([records.length, resumeAt]).toEqual([10, records.at(-1)?.serverUuid]);
  expect(await rowsRead()).toBeLessThan(30);
  expect((await store.scanRequests({ ...scan, named: { contains: "nobody", limit: 10 } })).records).toEqual([]);
  expect(await rowsRead()).toBeLessThanOrEqual(500);
});

test("a list of changes since a time reads no older ones", async () => {
  const changedSinceMs = Date.now() + 3_600_000;
  expect(await store.listRequests({ projectId: null, marker: null, limit: 1_000, changedSinceMs })).toEqual([]);
  // Rows that no summary covers yet are read, too.
  expect(await rowsRead()).toBeLessThan(SERVERS / 10);
});

test("a list of very many changes reads no more than it returns", async () => {
  for (const times of [{ changedSinceMs: 0 }, { changedBeforeMs: Date.now() + 3_600_000 }]) {
    expect(await store.listRequests({ projectId: null, marker: null, limit: 10, ...times })).toHaveLength(10);
    expect(await rowsRead()).toBeLessThan(50);
  }
});

test("a page from a marker on reads what the page has, in each order", async () => {
  for (const order of ["newest-first", "oldest-first", "by-name", "by-name-backwards"] as const) {
    const [middle] = (
      await store.scanRequests({ projectId: null, marker: null, rows: SERVERS / 2, order })
    ).records.slice(-1);
    const marker = middle?.serverUuid ?? null;
    expect(await store.listRequests({ projectId: null, marker, limit: 10, order })).toHaveLength(10);
    expect(await rowsRead()).toBeLessThan(50);
    await store.scanRequests({ projectId: null, marker, rows: 10, order });
    expect(await rowsRead()).toBeLessThan(50);
  }
});
