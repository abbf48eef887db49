import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Pool } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { dropDatabase, ensureDatabase, withClient } from "../../adapters/postgres/client/databases.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { describeSchema } from "../../adapters/postgres/schema/describe-schema.ts";
import { migrate, pendingMigrations } from "../../adapters/postgres/schema/migrate.ts";
import { type DatabaseKind, readSchemaFiles, schemaDirectory } from "../../adapters/postgres/schema/schema-files.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import { conductorId, dispatchOf, serverId, taskId } from "../contract/cell-fixtures.ts";
import { ledgerContract } from "../contract/ledger.contract.ts";
import { emptyCellTables } from "../rigs/empty-cell.ts";

const KINDS = ["api", "cell"] as const;
const suffix = randomBytes(6).toString("hex");
const nameOf = (kind: DatabaseKind) => `test_before_${kind}_${suffix}`;
const urlOf = (kind: DatabaseKind) =>
  Object.assign(new URL(inject("postgresUrl")), { pathname: `/${nameOf(kind)}` }).href;

/**
 * Two databases in the state that the last version before the baseline left them in. Server 1 is ACTIVE, server 2 is being built on its
 * alternate, and a resize of server 3 has begun. A single conductor, which is gone, owns all three.
 */
async function createDatabases(): Promise<void> {
  for (const kind of KINDS) {
    await ensureDatabase(inject("postgresUrl"), nameOf(kind));
    const sql = readFileSync(new URL(`../before-baseline/${kind}.sql`, import.meta.url), "utf8");
    await withClient(urlOf(kind), (client) => client.query(sql));
  }
}

async function dropDatabases(): Promise<void> {
  for (const kind of KINDS) await dropDatabase(inject("postgresUrl"), nameOf(kind));
}

type ColumnsByTable = Readonly<Record<string, readonly string[]>>;

/** The columns of every table except the record of the schema. */
async function columnsOf(kind: DatabaseKind): Promise<ColumnsByTable> {
  return withClient(urlOf(kind), async (client) => {
    const { rows } = await client.query<{ name: string; columns: string[] }>(
      `select c.relname as name, array_agg(quote_ident(a.attname) order by a.attnum) as columns
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and c.relname not like 'schema\\_%'
        group by c.relname`,
    );
    return Object.fromEntries(rows.map(({ name, columns }) => [name, columns]));
  });
}

/** Every row of these tables, by these columns. */
async function rowsOf(kind: DatabaseKind, columns: ColumnsByTable): Promise<Readonly<Record<string, unknown>>> {
  return withClient(urlOf(kind), async (client) => {
    const found: Record<string, unknown> = {};
    for (const [table, names] of Object.entries(columns)) {
      const { rows } = await client.query(`select row(${names.join(", ")})::text as row from ${table} order by 1`);
      found[table] = rows.map(({ row }) => row);
    }
    return found;
  });
}

describe("a database of the last version before the baseline", () => {
  beforeEach(createDatabases);
  afterEach(dropDatabases);

  test.each(KINDS)("is adopted with every row, and has the same schema as a new one: %s", async (kind) => {
    const columns = await columnsOf(kind);
    const before = await rowsOf(kind, columns);
    await withClient(urlOf(kind), async (client) => expect(await pendingMigrations(client, kind)).not.toEqual([]));
    expect((await migrate(urlOf(kind), kind))[0]).toBe("0001-baseline");
    expect(await rowsOf(kind, columns)).toEqual(before);
    await withClient(urlOf(kind), async (client) => {
      expect(await pendingMigrations(client, kind)).toEqual([]);
      expect(await describeSchema(client)).toBe(readFileSync(new URL("schema.sql", schemaDirectory(kind)), "utf8"));
    });
    expect(await migrate(urlOf(kind), kind)).toEqual([]);
  });

  test("is adopted once when five migrators run at once, and none of them fails", async () => {
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(urlOf("cell"), "cell")));
    expect(applied.flat().filter((name) => name === "0001-baseline")).toHaveLength(1);
  });

  test("keeps the record of its migrations, so that services of the previous version can start again", async () => {
    const [baseline] = readSchemaFiles(schemaDirectory("cell")).migrations;
    const replaced = [...(baseline?.replaces ?? [])].map(([name, checksum]) => ({ name, checksum }));
    await migrate(urlOf("cell"), "cell");
    await withClient(urlOf("cell"), async (client) => {
      const { rows } = await client.query(
        "select name, checksum from schema_migrations where name = any ($1) order by name",
        [replaced.map(({ name }) => name)],
      );
      expect(rows).toEqual(replaced);
    });
  });

  test("keeps a server closed for good that it had closed, since an old scheduler relies on that while a request comes back", async () => {
    const closed =
      "insert into servers (uuid, status, spec, project_id, user_id, name, created_at) values ($1, 'CLOSED', '', '', '', '', now())";
    await withClient(urlOf("cell"), (client) => client.query(closed, [serverId(9)]));
    await migrate(urlOf("cell"), "cell");
    const pool = createPool({ url: urlOf("cell"), applicationName: "a cell to which a request comes back" });
    try {
      const build = dispatchOf({ server: 9, task: 99, hosts: [0] });
      expect(await new PostgresCellStore(pool).dispatch([{ ...build, assignment: 2 }])).toEqual([{ kind: "closed" }]);
    } finally {
      await pool.end();
    }
  });

  test("is refused with advice where it lacks the last of the migrations, and nothing is changed", async () => {
    await withClient(urlOf("cell"), async (client) => {
      const { rows } = await client.query<{ name: string }>(
        "delete from schema_migrations where name = (select max(name) from schema_migrations) returning name",
      );
      const last = rows[0]?.name;
      const sentence = `it lacks ${last}. Run \`berth db migrate\` of an older version first, the one whose last migration is ${last},`;
      const refusal = { code: "too-old", message: expect.stringContaining(sentence) };
      await expect(migrate(urlOf("cell"), "cell")).rejects.toMatchObject(refusal);
      await expect(pendingMigrations(client, "cell")).rejects.toMatchObject(refusal);
      expect((await client.query("select from schema_migrations where name = '0001-baseline'")).rowCount).toBe(0);
      expect((await client.query("select from pg_proc where proname = 'ledger_decide'")).rowCount).toBe(0);
    });
  });
});

describe("an adopted database", () => {
  let pool: Pool;
  beforeAll(async () => {
    await createDatabases();
    for (const kind of KINDS) await migrate(urlOf(kind), kind);
    pool = createPool({ url: urlOf("cell"), applicationName: "a database that was taken over" });
  });
  afterAll(async () => {
    await pool.end();
    await dropDatabases();
  });

  test("passes the audit, and its tasks continue where they stopped", async () => {
    const store = new PostgresCellStore(pool);
    const violations = async () => {
      const report = await auditTwice({
        apiUrl: urlOf("api"),
        cells: [{ name: "c1", databaseUrl: urlOf("cell") }],
        pauseMs: 0,
        // The data in the databases is as old as the file.
        patienceMs: Number.MAX_SAFE_INTEGER,
        conductorSettings: [],
      });
      return report.violations;
    };
    const statuses = async () =>
      (await store.servers([1, 2, 3].map(serverId))).map(({ status, taskState, host }) => [status, taskState, host]);
    expect(await violations()).toEqual([]);
    expect(await statuses()).toEqual([
      ["ACTIVE", null, "host-0"],
      ["BUILD", "spawning", "host-1"],
      ["ACTIVE", "resize_prep", "host-0"],
    ]);
    await store.renewLease({ id: conductorId(1), name: "conductor of this version", leaseMs: 3_600_000 });
    const taken = await store.sweepTasks(conductorId(1), 0, 10);
    expect(taken.map(({ task, selection }) => [task.id, task.work?.$case, selection]).sort()).toEqual([
      [taskId(2), "build", 1],
      [taskId(33), "operate", 0],
    ]);
    const { epoch } = taken.find(({ task }) => task.id === taskId(2))!;
    await store.commitActive([{ taskId: taskId(2), serverUuid: serverId(2), epoch, selection: 1 }]);
    expect((await statuses())[1]).toEqual(["ACTIVE", null, "host-1"]);
    expect(await violations()).toEqual([]);
  });

  ledgerContract("a database that was taken over", async () => {
    await emptyCellTables(pool);
    return { ledger: new PostgresLedger(pool), dispose: async () => {} };
  });
});
