import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { PrimaryClient } from "../client/primary-client.ts";
import { applyPatiently, type LockPatience } from "./apply-patiently.ts";
import { applyFunctions, applyMigration } from "./apply-schema.ts";
import { MigrateError } from "./migrate-error.ts";
import { type DatabaseKind, readSchemaFiles, schemaDirectory } from "./schema-files.ts";
import { compareSchema, ensureRecord, noteMigration, type Pending, tooNew } from "./schema-record.ts";

export interface MigrateOptions extends LockPatience {
  /** The directory of `migrations/` and `functions/`. Berth's own by default. */
  readonly directory?: URL;
}

// An arbitrary number that all installers share, so that only one of them works on a database at a time.
const INSTALL_LOCK = 7_236_418_051;
const INSTALL_LOCK_LOOK_MS = 100;

/**
 * Brings a database up to this version, and returns the names of the applied files. First it applies the missing `migrations/NNNN-*.sql`,
 * in order, each in a transaction of its own; then, in one transaction, every function of `functions/` whose text has changed. A database
 * that was made by the migrations that a baseline replaces is adopted as it is.
 *
 * Any number of processes may call it at once. A step that does not get its locks soon steps back and tries again, so that a cloud
 * continues to work during a long read (a backup). Throws `MigrateError`.
 */
export async function migrate(
  url: string,
  kind: DatabaseKind,
  options: MigrateOptions = {},
): Promise<readonly string[]> {
  const client = new PrimaryClient({
    connectionString: url,
    application_name: "berth migrate",
    connectionTimeoutMillis: 5_000,
  });
  await client.connect();
  try {
    await requireServerVersion(client);
    await takeInstallLock(client);
    await ensureRecord(client);
    const files = readSchemaFiles(options.directory ?? schemaDirectory(kind));
    const pending = await compareSchema(client, kind, files);
    if (pending.unknown !== null) throw tooNew(pending.unknown);
    if (pending.adopted !== null) await noteMigration(client, kind, pending.adopted);
    const target = { client, kind, functions: files.functions };
    for (const migration of pending.migrations)
      await applyPatiently({ client, url }, `the migration ${migration.name}`, options, () =>
        applyMigration(target, migration, options.lockTimeoutMs),
      );
    if (pending.functions.length > 0)
      await applyPatiently({ client, url }, "the functions", options, () =>
        applyFunctions(client, pending.functions, options.lockTimeoutMs),
      );
    return pending.adopted === null ? namesOf(pending) : [pending.adopted.name, ...namesOf(pending)];
  } finally {
    await client.end(); // Closing the session releases its lock.
  }
}

/** The oldest PostgreSQL version that Berth works with, in the form of `server_version_num`. */
const SERVER_VERSION_MIN = 150_000;

async function requireServerVersion(client: pg.Pool | pg.Client): Promise<void> {
  const { rows } = await client.query<{ server_version_num: string }>("show server_version_num");
  const version = Number(rows[0]?.server_version_num);
  if (version >= SERVER_VERSION_MIN) return;
  throw new MigrateError(
    "server-too-old",
    `the database server is PostgreSQL ${Math.floor(version / 10_000)}, but Berth needs ${SERVER_VERSION_MIN / 10_000} or newer: upgrade the server`,
  );
}

/**
 * Polls instead of waiting in the database, because a waiting statement holds a snapshot, and `create index concurrently` waits for all
 * snapshots.
 */
async function takeInstallLock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>("select pg_try_advisory_lock($1) as taken", [INSTALL_LOCK]);
    if (rows[0]?.taken) return;
    await delay(INSTALL_LOCK_LOOK_MS);
  }
}

/**
 * Names of the migrations that the database lacks, and of the functions (`functions/<name>`) whose current text it lacks. Empty when the
 * database is ready for use. Migrations that this version does not know, and newer texts of functions, are ignored, because otherwise no
 * process of the old version could be restarted in the middle of an upgrade. Migrations that are marked as breaking are the exception.
 * Throws `MigrateError`. Changes nothing.
 */
export async function pendingMigrations(client: pg.Pool | pg.Client, kind: DatabaseKind): Promise<readonly string[]> {
  await requireServerVersion(client);
  return namesOf(await compareSchema(client, kind, readSchemaFiles(schemaDirectory(kind))));
}

/**
 * Why a service of this version cannot use the database, and what to do, as one line; null when it can. `database` names it, for example
 * "the API database". Throws `MigrateError`. Changes nothing.
 */
export async function describeUnready(
  client: pg.Pool | pg.Client,
  kind: DatabaseKind,
  database: string,
): Promise<string | null> {
  await requireServerVersion(client);
  const pending = await compareSchema(client, kind, readSchemaFiles(schemaDirectory(kind)));
  const names = namesOf(pending);
  if (names.length === 0) return null;
  const newer = pending.unknown ?? (pending.newerFunction === null ? null : `functions/${pending.newerFunction}`);
  if (newer === null) return `${database} lacks ${names.join(", ")}; run \`berth db migrate\``;
  return (
    `this process is older than ${database}, which has ${newer} of a newer version of Berth and lacks ${names.join(", ")}: ` +
    "start the newer version of this process (`berth db migrate` of this version cannot help)"
  );
}

/** A larger number of functions is only counted, not listed. */
const FUNCTIONS_NAMED_MAX = 3;

function namesOf({ migrations, functions }: Pending): readonly string[] {
  const changed =
    functions.length > FUNCTIONS_NAMED_MAX
      ? [`the current text of ${functions.length} functions`]
      : functions.map(({ name }) => `functions/${name}`);
  return [...migrations.map((migration) => migration.name), ...changed];
}
