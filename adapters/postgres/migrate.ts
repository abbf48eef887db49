import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type pg from "pg";
import { PrimaryClient } from "./primary-client.ts";

export type DatabaseKind = "cell" | "api";

interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
  /** Programs that do not know it cannot work on its database: its file has a line `-- breaking: why`. */
  readonly breaking: boolean;
}

export type MigrateErrorCode =
  /** The database has migrations that this version of Berth does not know, and it was to be changed, or they break programs that do not. */
  | "too-new"
  /** It is a database of the other kind. */
  | "other-kind"
  /** A migration was changed after this database had it. */
  | "changed";

/** Why a database cannot be used by this version; nothing was changed. */
export class MigrateError extends Error {
  readonly code: MigrateErrorCode;

  constructor(code: MigrateErrorCode, message: string) {
    super(message);
    this.name = "MigrateError";
    this.code = code;
  }
}

// Arbitrary, the same for all: one installer at a time per database.
const INSTALL_LOCK = 7_236_418_051;

/**
 * Brings a database up to this version: runs what is missing of migrations/<kind>/NNNN-*.sql in order, each in a transaction
 * of its own, and returns their names. Any number of processes may call it at once. Throws `MigrateError`.
 */
export async function migrate(url: string, kind: DatabaseKind): Promise<readonly string[]> {
  const client = new PrimaryClient({
    connectionString: url,
    application_name: "berth migrate",
    connectionTimeoutMillis: 5_000,
  });
  // A connection that is lost between two queries: the next one rejects, and an event nobody listens to would end the process.
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.query("select pg_advisory_lock($1)", [INSTALL_LOCK]);
    await client.query(
      `create table if not exists schema_migrations (
         name text primary key,
         kind text not null,
         checksum text not null,
         applied_at timestamptz not null default now()
       )`,
    );
    await client.query(
      "alter table schema_migrations add column if not exists breaking boolean not null default false",
    );
    const { pending, unknown } = await compare(client, kind);
    if (unknown !== null) throw tooNew(unknown);
    for (const migration of pending) await apply(client, kind, migration);
    return pending.map((migration) => migration.name);
  } finally {
    await client.end(); // and with the session goes its lock
  }
}

/**
 * Names of the migrations that the database lacks; empty when it is ready for use. Migrations that this version does not know are none of its
 * affair, or in the middle of an upgrade no process of the old version could be started again; unless they are marked as breaking. Throws
 * `MigrateError`. Changes nothing.
 */
export async function pendingMigrations(client: pg.Pool | pg.Client, kind: DatabaseKind): Promise<readonly string[]> {
  const { rows } = await client.query<{ found: boolean }>(
    "select to_regclass('schema_migrations') is not null as found",
  );
  const pending = rows[0]?.found ? (await compare(client, kind)).pending : readMigrations(kind);
  return pending.map((migration) => migration.name);
}

interface Comparison {
  readonly pending: readonly Migration[];
  /** One that the database has and this version does not know. */
  readonly unknown: string | null;
}

async function compare(client: pg.Pool | pg.Client, kind: DatabaseKind): Promise<Comparison> {
  const known = new Map(readMigrations(kind).map((migration) => [migration.name, migration]));
  // By way of JSON, as a database that was installed long ago has no such column.
  const { rows: applied } = await client.query<{ kind: string; name: string; checksum: string; breaking: boolean }>(
    `select kind, name, checksum, coalesce((to_jsonb(m) ->> 'breaking')::boolean, false) as breaking
     from schema_migrations m order by name`,
  );
  let unknown: string | null = null;
  for (const row of applied) {
    if (row.kind !== kind) throw new MigrateError("other-kind", `this is a database of kind ${row.kind}, not ${kind}`);
    const migration = known.get(row.name);
    if (migration === undefined) {
      if (row.breaking) throw tooNew(row.name);
      unknown = row.name;
    } else if (migration.checksum !== row.checksum) {
      throw new MigrateError(
        "changed",
        `the migration ${row.name} was changed after the database had it: add a new one instead`,
      );
    }
    known.delete(row.name);
  }
  return { pending: [...known.values()], unknown };
}

function tooNew(name: string): MigrateError {
  return new MigrateError(
    "too-new",
    `the database has the migration ${name}, which this version of Berth does not know: use a newer one`,
  );
}

async function apply(client: pg.Client, kind: DatabaseKind, migration: Migration): Promise<void> {
  await client.query("begin");
  try {
    await client.query(migration.sql);
    await client.query("insert into schema_migrations (kind, name, checksum, breaking) values ($1, $2, $3, $4)", [
      kind,
      migration.name,
      migration.checksum,
      migration.breaking,
    ]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw new Error(`migration ${migration.name} failed: ${(error as Error).message}`, { cause: error });
  }
}

function readMigrations(kind: DatabaseKind): readonly Migration[] {
  const dir = new URL(`./migrations/${kind}/`, import.meta.url);
  return readdirSync(dir)
    .filter((file) => /^\d{4}-.*\.sql$/.test(file))
    .sort()
    .map((file) => {
      const sql = readFileSync(new URL(file, dir), "utf8");
      const checksum = createHash("sha256").update(sql).digest("hex");
      return { name: file.replace(".sql", ""), sql, checksum, breaking: /^-- breaking: ./m.test(sql) };
    });
}
