import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { type Blocker, describeBlocker, watchBlockers } from "./lock-blockers.ts";
import { PrimaryClient } from "./primary-client.ts";

export type DatabaseKind = "cell" | "api";

interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
  /** Programs that do not know it cannot work on its database: its file has a line `-- breaking: why`. */
  readonly breaking: boolean;
  /**
   * Its statements run one by one and outside of a transaction, as `create index concurrently` wants it: its file has a line
   * `-- concurrently: why`. Each statement ends a line with its semicolon, and all of them may be repeated.
   */
  readonly concurrent: boolean;
}

export interface MigrateOptions {
  /** How long a migration waits for a lock: whatever comes after it to the same table waits as long. 2,000 unless given. */
  readonly lockTimeoutMs?: number;
  /** How often it tries to get its locks. 20 unless given. */
  readonly triesMax?: number;
  /** The pause between two tries, in which others get on. 3,000 unless given. */
  readonly pauseMs?: number;
  /** Called when a migration did not get a lock and will try again. */
  readonly onBlocked?: (migration: string, blockers: readonly string[]) => void;
  /** Where the migrations are; Berth's own unless given. */
  readonly directory?: URL;
}

export type MigrateErrorCode =
  /** The database has migrations that this version of Berth does not know, and it was to be changed, or they break programs that do not. */
  | "too-new"
  /** It is a database of the other kind. */
  | "other-kind"
  /** A migration was changed after this database had it. */
  | "changed"
  /** The server's version of PostgreSQL is older than Berth works with. */
  | "server-too-old"
  /** Others held a lock that a migration needs, for longer than it tries. */
  | "blocked";

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
const INSTALL_LOCK_LOOK_MS = 100;
const LOCK_TIMEOUT_MS = 2_000;
const TRIES_MAX = 20;
const PAUSE_MS = 3_000;
/** Nobody waits behind a statement that works concurrently; so it may wait long for the transactions that are older than it. */
const CONCURRENT_LOCK_TIMEOUT_MS = 60_000;

/**
 * Brings a database up to this version: runs what is missing of migrations/<kind>/NNNN-*.sql in order, each in a transaction
 * of its own, and returns their names. Any number of processes may call it at once. A migration that does not get its locks soon steps back and
 * tries again, so that a cloud goes on working behind a long read (a backup). Throws `MigrateError`.
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
    const { pending, unknown } = await compare(client, kind, options.directory);
    if (unknown !== null) throw tooNew(unknown);
    for (const migration of pending) await applyPatiently({ client, url, kind }, migration, options);
    return pending.map((migration) => migration.name);
  } finally {
    await client.end(); // and with the session goes its lock
  }
}

/** The oldest PostgreSQL that Berth works with, as `server_version_num` has it. */
const SERVER_VERSION_MIN = 150_000;
/** From this version on `create table` takes the storage of a column. */
const STORAGE_IN_CREATE = 160_000;

async function serverVersion(client: pg.Pool | pg.Client): Promise<number> {
  const { rows } = await client.query<{ server_version_num: string }>("show server_version_num");
  return Number(rows[0]?.server_version_num);
}

async function requireServerVersion(client: pg.Pool | pg.Client): Promise<void> {
  const version = await serverVersion(client);
  if (version >= SERVER_VERSION_MIN) return;
  throw new MigrateError(
    "server-too-old",
    `the database server is PostgreSQL ${Math.floor(version / 10_000)}, and Berth needs ${SERVER_VERSION_MIN / 10_000} or newer: upgrade the server`,
  );
}

/** A migration in the words that this server knows. Its checksum is that of the file. */
export function forServer(sql: string, version: number): string {
  return version >= STORAGE_IN_CREATE ? sql : sql.replace(/ bytea storage external\b/g, " bytea");
}

/** Polls instead of waiting in the database: a statement that waits holds a snapshot, and `create index concurrently` waits for all snapshots. */
async function takeInstallLock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>("select pg_try_advisory_lock($1) as taken", [INSTALL_LOCK]);
    if (rows[0]?.taken) return;
    await delay(INSTALL_LOCK_LOOK_MS);
  }
}

/** Creates the table that records which migrations a database has. Changes nothing where it exists. */
async function ensureRecord(client: pg.Client): Promise<void> {
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
}

/**
 * Names of the migrations that the database lacks; empty when it is ready for use. Migrations that this version does not know are none of its
 * affair, or in the middle of an upgrade no process of the old version could be started again; unless they are marked as breaking. Throws
 * `MigrateError`. Changes nothing.
 */
export async function pendingMigrations(client: pg.Pool | pg.Client, kind: DatabaseKind): Promise<readonly string[]> {
  await requireServerVersion(client);
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

async function compare(client: pg.Pool | pg.Client, kind: DatabaseKind, directory?: URL): Promise<Comparison> {
  const known = new Map(readMigrations(kind, directory).map((migration) => [migration.name, migration]));
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

/** SQLSTATEs of a lock that was not granted in time, and of a deadlock. */
const NO_LOCK = ["55P03", "40P01"];

interface Installation {
  readonly client: pg.Client;
  readonly url: string;
  readonly kind: DatabaseKind;
}

async function applyPatiently(to: Installation, migration: Migration, options: MigrateOptions): Promise<void> {
  const triesMax = options.triesMax ?? TRIES_MAX;
  const { rows } = await to.client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const session = { url: to.url, pid: rows[0]!.pid };
  let blockers: readonly Blocker[] = [];
  for (let tries = 1; ; tries += 1) {
    try {
      const apply = () =>
        migration.concurrent ? applyOneByOne(to, migration, options) : applyAtOnce(to, migration, options);
      await watchBlockers(session, apply, (found) => {
        blockers = found;
      });
      return;
    } catch (error) {
      if (!NO_LOCK.includes((error as { readonly code?: string }).code ?? ""))
        throw new Error(`migration ${migration.name} failed: ${(error as Error).message}`, { cause: error });
      if (tries >= triesMax) throw blockedBy(migration.name, tries, blockers);
      options.onBlocked?.(migration.name, blockers.map(describeBlocker));
      await delay(options.pauseMs ?? PAUSE_MS);
    }
  }
}

function blockedBy(name: string, tries: number, blockers: readonly Blocker[]): MigrateError {
  const who = blockers.length === 0 ? "sessions that ended meanwhile" : blockers.map(describeBlocker).join("; ");
  const how = blockers.map(({ pid }) => `\`select pg_terminate_backend(${pid})\``).join(", ");
  return new MigrateError(
    "blocked",
    `the migration ${name} did not get its locks in ${tries} tries. They are held by ${who}. Wait until that has ended` +
      `${how === "" ? "" : ` (or end it with ${how})`}, then run \`berth db migrate\` again. The database is as it was before this migration, ` +
      "and services work on.",
  );
}

async function applyAtOnce(
  { client, kind }: Installation,
  migration: Migration,
  options: MigrateOptions,
): Promise<void> {
  await client.query("begin");
  try {
    await client.query(`set local lock_timeout = ${Math.round(options.lockTimeoutMs ?? LOCK_TIMEOUT_MS)}`);
    await client.query(forServer(migration.sql, await serverVersion(client)));
    await note(client, kind, migration);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

async function applyOneByOne(
  { client, kind }: Installation,
  migration: Migration,
  options: MigrateOptions,
): Promise<void> {
  await client.query(`set lock_timeout = ${Math.round(options.lockTimeoutMs ?? CONCURRENT_LOCK_TIMEOUT_MS)}`);
  try {
    for (const statement of migration.sql.split(/;[ \t]*$/m)) {
      if (statement.replace(/^\s*--.*$/gm, "").trim() !== "") await client.query(statement);
    }
    await note(client, kind, migration);
  } finally {
    await client.query("reset lock_timeout");
  }
}

async function note(client: pg.Client, kind: DatabaseKind, { name, checksum, breaking }: Migration): Promise<void> {
  await client.query("insert into schema_migrations (kind, name, checksum, breaking) values ($1, $2, $3, $4)", [
    kind,
    name,
    checksum,
    breaking,
  ]);
}

function readMigrations(kind: DatabaseKind, directory?: URL): readonly Migration[] {
  const dir = directory ?? new URL(`./migrations/${kind}/`, import.meta.url);
  return readdirSync(dir)
    .filter((file) => /^\d{4}-.*\.sql$/.test(file))
    .sort()
    .map((file) => {
      const sql = readFileSync(new URL(file, dir), "utf8");
      const checksum = createHash("sha256").update(sql).digest("hex");
      const has = (marker: string) => new RegExp(`^-- ${marker}: .`, "m").test(sql);
      return {
        name: file.replace(".sql", ""),
        sql,
        checksum,
        breaking: has("breaking"),
        concurrent: has("concurrently"),
      };
    });
}
