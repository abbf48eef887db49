import type pg from "pg";
import { MigrateError } from "./migrate-error.ts";
import type { DatabaseKind, MigrationFile, SchemaFiles, SqlFunction } from "./schema-files.ts";

// The database's record of its schema: `schema_migrations` lists the applied migrations, `schema_functions` the texts of its functions.

/** Creates the tables of the record, unless they exist. */
export async function ensureRecord(client: pg.Client): Promise<void> {
  await client.query(
    `create table if not exists schema_migrations (
       name text primary key,
       kind text not null,
       checksum text not null,
       applied_at timestamptz not null default now()
     )`,
  );
  const { rowCount } = await client.query(
    `select from pg_attribute
     where attrelid = 'schema_migrations'::regclass and attname = 'breaking' and not attisdropped`,
  );
  if (rowCount === 0)
    await client.query(
      "alter table schema_migrations add column if not exists breaking boolean not null default false",
    );
  await client.query(
    `create table if not exists schema_functions (
       name text primary key,
       revision int not null,
       checksum text not null,
       applied_at timestamptz not null default now()
     )`,
  );
}

/** The files that a database lacks. */
export interface Pending {
  readonly migrations: readonly MigrationFile[];
  /** A baseline whose tables the database already has from the migrations that it replaces. It only has to be recorded. */
  readonly adopted: MigrationFile | null;
  readonly functions: readonly SqlFunction[];
  /** A migration that the database has and that this version does not know. */
  readonly unknown: string | null;
  /** A function of which the database has a newer text than this version. */
  readonly newerFunction: string | null;
}

/** Compares a database with the files. Throws `MigrateError`. Changes nothing. */
export async function compareSchema(
  client: pg.Pool | pg.Client,
  kind: DatabaseKind,
  files: SchemaFiles,
): Promise<Pending> {
  const { rows } = await client.query<{ migrations: boolean; functions: boolean }>(
    "select to_regclass('schema_migrations') is not null as migrations, to_regclass('schema_functions') is not null as functions",
  );
  const applied = rows[0]?.migrations ? await readMigrationRows(client) : [];
  const stored = rows[0]?.functions ? await readFunctionRows(client) : [];
  return {
    ...compareMigrations(applied, kind, files.migrations),
    functions: pendingFunctions(stored, files.functions),
    newerFunction: newerFunctionOf(stored, files.functions),
  };
}

interface MigrationRow {
  readonly kind: string;
  readonly name: string;
  readonly checksum: string;
  readonly breaking: boolean;
}

async function readMigrationRows(client: pg.Pool | pg.Client): Promise<readonly MigrationRow[]> {
  // The row is read as JSON, because a database that was installed long ago lacks some of the columns.
  const { rows } = await client.query<MigrationRow>(
    `select kind, name, checksum, coalesce((to_jsonb(m) ->> 'breaking')::boolean, false) as breaking
     from schema_migrations m order by name`,
  );
  return rows;
}

interface FunctionRow {
  readonly name: string;
  readonly revision: number;
  readonly checksum: string;
}

async function readFunctionRows(client: pg.Pool | pg.Client): Promise<readonly FunctionRow[]> {
  const { rows } = await client.query<FunctionRow>("select name, revision, checksum from schema_functions");
  return rows;
}

function compareMigrations(
  applied: readonly MigrationRow[],
  kind: DatabaseKind,
  migrations: readonly MigrationFile[],
): Omit<Pending, "functions" | "newerFunction"> {
  const pending = new Map(migrations.map((migration) => [migration.name, migration]));
  const replaced = new Map(migrations.flatMap((migration) => [...migration.replaces]));
  let unknown: string | null = null;
  for (const row of applied) {
    if (row.kind !== kind)
      throw new MigrateError(
        "other-kind",
        `this is a database of kind ${row.kind}, not ${kind}: check the URL of the ${kind} database`,
      );
    const checksum = pending.get(row.name)?.checksum ?? replaced.get(row.name);
    if (checksum === undefined) {
      if (row.breaking) throw tooNew(row.name);
      unknown = row.name;
    } else if (checksum !== row.checksum) {
      throw new MigrateError(
        "changed",
        `the migration ${row.name} was changed after the database had applied it: add a new one instead`,
      );
    }
    pending.delete(row.name);
  }
  const names = new Set(applied.map((row) => row.name));
  const adopted = names.size === 0 ? null : ([...pending.values()].find((one) => one.replaces.size > 0) ?? null);
  if (adopted !== null) requireReplaced(adopted, names);
  return { migrations: [...pending.values()].filter((one) => one !== adopted), adopted, unknown };
}

/** A baseline can adopt only a database that has the last of the migrations that it replaces. Throws `MigrateError` otherwise. */
function requireReplaced(baseline: MigrationFile, names: ReadonlySet<string>): void {
  const replaced = [...baseline.replaces.keys()];
  const missing = replaced.filter((name) => !names.has(name));
  if (missing.length === 0) return;
  throw new MigrateError(
    "too-old",
    `the database is too old for this version of Berth: it lacks ${missing.join(", ")}. Run \`berth db migrate\` of an older version first, ` +
      `the one whose last migration is ${replaced.at(-1)}, and then \`berth db migrate\` of this version. Nothing was changed`,
  );
}

/**
 * Functions whose text in the database differs and is not newer. A newer text belongs to a later version, works for this version's
 * services, too, and is left alone.
 */
function pendingFunctions(stored: readonly FunctionRow[], functions: readonly SqlFunction[]): readonly SqlFunction[] {
  const rows = new Map(stored.map((row) => [row.name, row]));
  return functions.filter(({ name, checksum, revision }) => {
    const row = rows.get(name);
    return row === undefined || (row.checksum !== checksum && row.revision <= revision);
  });
}

function newerFunctionOf(stored: readonly FunctionRow[], functions: readonly SqlFunction[]): string | null {
  const own = new Map(functions.map((one) => [one.name, one]));
  return stored.find(({ name, revision }) => revision > (own.get(name)?.revision ?? revision))?.name ?? null;
}

export function tooNew(name: string): MigrateError {
  return new MigrateError(
    "too-new",
    `the database has the migration ${name}, which this version of Berth does not know: use a newer version`,
  );
}

/**
 * Records that the database has this migration and, for a baseline, the ones that it replaces. So a process of the version before the
 * baseline can also start on a database that this version made.
 */
export async function noteMigration(client: pg.Client, kind: DatabaseKind, migration: MigrationFile): Promise<void> {
  const replaced = [...migration.replaces];
  await client.query(
    `insert into schema_migrations (kind, name, checksum, breaking)
     select $1, w.name, w.checksum, false from unnest($2::text[], $3::text[]) as w (name, checksum)
     on conflict (name) do nothing`,
    [kind, replaced.map(([name]) => name), replaced.map(([, checksum]) => checksum)],
  );
  await client.query("insert into schema_migrations (kind, name, checksum, breaking) values ($1, $2, $3, $4)", [
    kind,
    migration.name,
    migration.checksum,
    migration.breaking,
  ]);
}

export async function noteFunctions(client: pg.Client, functions: readonly SqlFunction[]): Promise<void> {
  await client.query(
    `insert into schema_functions (name, revision, checksum)
     select * from unnest($1::text[], $2::int[], $3::text[])
     on conflict (name) do update set revision = excluded.revision, checksum = excluded.checksum, applied_at = now()`,
    [functions.map((one) => one.name), functions.map((one) => one.revision), functions.map((one) => one.checksum)],
  );
}
