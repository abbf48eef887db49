import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { dropDatabase, ensureDatabase } from "../../adapters/postgres/client/databases.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { createPlacementStore } from "../../adapters/postgres/placement/postgres-placement-store.ts";
import { handlePlacement, type PlacementDeps } from "../../services/api/placement/app.ts";
import { authenticateNoauth2 } from "../../services/api/placement/identity.ts";
import { legacyDefaults } from "../../services/api/placement/placement-rules.ts";
import { Policy } from "../../services/api/policy/policy.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { type FilledPlacement, fillPlacement, PROJECT } from "./fill-placement.ts";
import { hasMariadb, startRealMariadb } from "./real-mariadb.ts";
import {
  type CallPlacement,
  hasPlacement,
  hasPythonModule,
  headersOf,
  type RealPlacement,
  startRealPlacement,
} from "./real-placement.ts";

interface PlacementDatabase {
  /** The connection in the form of placement.conf, which `--from` accepts unchanged. */
  readonly connection: string;
  drop(): Promise<void>;
}

async function onPostgres(): Promise<PlacementDatabase> {
  const admin = inject("postgresUrl");
  const name = `test_upstream_${process.pid}`;
  await ensureDatabase(admin, name);
  const url = new URL(admin.replace(/^postgres(ql)?:/, "postgresql+psycopg2:"));
  url.pathname = `/${name}`;
  return { connection: url.href, drop: () => dropDatabase(admin, name) };
}

async function onMariadb(): Promise<PlacementDatabase> {
  const server = await startRealMariadb("placement");
  return {
    connection: `mysql+pymysql://root@127.0.0.1:${server.port}/placement?charset=utf8`,
    drop: () => server.stop(),
  };
}

// Needs Debian's package placement-api and a driver for the database, which `npm run test:openstack` installs.
describe.each([
  { name: "PostgreSQL", open: onPostgres, isThere: hasPlacement && hasPythonModule("psycopg2") },
  { name: "MariaDB", open: onMariadb, isThere: hasPlacement && hasMariadb && hasPythonModule("pymysql") },
])("a real Placement on $name", ({ name, open, isThere }) => {
  describe.runIf(isThere)("is imported", () => {
    let database: PlacementDatabase;
    let placement: RealPlacement;
    let filled: FilledPlacement;
    let cell: TestDatabase;
    let pool: pg.Pool;

    beforeAll(async () => {
      database = await open();
      placement = await startRealPlacement(database.connection);
      filled = await fillPlacement(placement.call);
      cell = await freshDatabase("cell");
      pool = createPool({ url: cell.url, applicationName: "import test", connectionsMax: 4 });
    }, 900_000);
    afterAll(async () => {
      await placement?.stop();
      await database?.drop();
      await pool?.end();
      await cell?.drop();
    });

    const importNow = () =>
      promisify(execFile)(
        process.execPath,
        [join(import.meta.dirname, "../../cli/main.ts"), "import-placement", "--batch-rows", "2", "--restart"],
        { env: { ...process.env, BERTH_FROM: database.connection, BERTH_CELL_DATABASE_URL: cell.url } },
      ).catch((error: { readonly stdout: string; readonly code: number }) => error);

    /** Calls our own API over the imported data. */
    const callBerth: CallPlacement = async (method, path, version, body) => {
      const deps: PlacementDeps = {
        store: createPlacementStore(pool, new PostgresLedger(pool)),
        // None of these calls asks for candidates.
        source: {} as PlacementDeps["source"],
        authenticate: authenticateNoauth2,
        policy: new Policy(legacyDefaults()),
        onBoundReached: () => {},
        onUnexpected: (error) => {
          throw error;
        },
      };
      const [below = "", query = ""] = path.split("?");
      const response = await handlePlacement(deps, {
        ...{ method, path: below, query, mount: "", origin: "", requestId: "req-1" },
        headers: headersOf(version, body),
        body: new TextEncoder().encode(body === undefined ? "" : JSON.stringify(body)),
      });
      return {
        status: response.status,
        body: response.body === "" ? null : JSON.parse(`${Buffer.from(response.body as Uint8Array)}`),
        lastModified: response.headers["last-modified"] ?? null,
      };
    };

    test("and answers every question as before", async () => {
      const result = await importNow();
      expect(result.stdout).toContain("the import is complete: all counts and sums agree");
      const paths = [
        "/resource_providers",
        "/resource_classes",
        "/traits?name=startswith:CUSTOM_",
        `/resource_providers?in_tree=${filled.providers[2]}`,
        ...filled.providers.flatMap((uuid) =>
          ["", "/inventories", "/usages", "/aggregates", "/traits", "/allocations"].map(
            (part) => `/resource_providers/${uuid}${part}`,
          ),
        ),
        ...filled.consumers.map((uuid) => `/allocations/${uuid}`),
      ];
      for (const path of paths) {
        const [theirs, ours] = [await placement.call("GET", path, "1.39"), await callBerth("GET", path, "1.39")];
        expect(theirs.status, path).toBe(200);
        expect({ path, ...comparable(ours) }).toEqual({ path, ...comparable(theirs) });
        if (/^.resource_providers.[^/?]+$/.test(path)) expect(ours.lastModified).toBe(theirs.lastModified);
      }
      // On PostgreSQL upstream answers 500 from 1.38 on.
      for (const version of name === "PostgreSQL" ? ["1.37"] : ["1.37", "1.39"]) {
        const path = `/usages?project_id=${PROJECT}`;
        const [theirs, ours] = [await placement.call("GET", path, version), await callBerth("GET", path, version)];
        expect(comparable(ours).body).toEqual(comparable(theirs).body);
      }
    }, 60_000);

    test("and can be written to with the generations that were imported", async () => {
      const [consumer, first] = [filled.consumers[1]!, filled.providers[3]!];
      const held = (await callBerth("GET", `/allocations/${consumer}`, "1.39")).body as {
        readonly consumer_generation: number;
      };
      const body = {
        allocations: { [first]: { resources: { VCPU: 1 } } },
        project_id: PROJECT,
        user_id: PROJECT,
        consumer_type: "INSTANCE",
      };
      const put = (generation: number) =>
        callBerth("PUT", `/allocations/${consumer}`, "1.39", { ...body, consumer_generation: generation });
      expect((await put(held.consumer_generation + 1)).status).toBe(409);
      expect((await put(held.consumer_generation)).status).toBe(204);
      expect((await callBerth("POST", "/resource_providers", "1.39", { name: "new" })).status).toBe(200);
    });

    test("and is refused with the names of rows that do not fit", async () => {
      await damage(database.connection, filled);
      const result = await importNow();
      expect(result).toMatchObject({ code: 1 });
      expect(result.stdout).toContain("does not fit: orphan allocations: their consumer does not exist: 1 ");
      expect(result.stdout).toContain("does not fit: allocations of unknown classes: 1 ");
      expect(result.stdout).toContain("does not fit: orphan allocations: their inventory does not exist: 1 ");
      expect(result.stdout).toContain(
        `note: more is used than there is: ${filled.providers[3]} (host 4): 12 of 1 VCPU`,
      );
      expect(result.stdout).toContain("the import is not complete");
    });
  });
});

/** Lists are sets in this API. */
function comparable(answer: { readonly status: number; readonly body: unknown }) {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, part]) => [key, sorted(part)]),
    );
  };
  return { status: answer.status, body: sorted(answer.body) };
}

/** Writes rows that upstream's API would never write, but that occur in real databases. */
async function damage(connection: string, filled: FilledPlacement): Promise<void> {
  const insert = "insert into allocations (resource_provider_id, consumer_id, resource_class_id, used)";
  const idOf = (uuid: string | undefined) => `(select id from resource_providers where uuid = '${uuid}')`;
  const statements = [
    `${insert} values (${idOf(filled.providers[0])}, 'c0ffee00-0000-4000-8000-000000000000', 0, 1)`,
    `${insert} values (${idOf(filled.providers[0])}, '${filled.consumers[0]}', 77777, 1)`,
    `${insert} select ${idOf(filled.providers[1])}, '${filled.consumers[0]}', id, 1 from resource_classes where name = 'VCPU'`,
    `update inventories set total = 1, allocation_ratio = 1 where resource_provider_id = ${idOf(filled.providers[3])}`,
  ];
  if (connection.startsWith("mysql")) {
    const { createConnection } = await import("mysql2/promise");
    const client = await createConnection(connection.replace("+pymysql", "").replace(/\?.*/, ""));
    for (const statement of statements) await client.query(statement);
    await client.end();
    return;
  }
  const client = new pg.Client({ connectionString: connection.replace("+psycopg2", "") });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}
