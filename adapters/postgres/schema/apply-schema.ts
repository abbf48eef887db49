import type pg from "pg";
import { type DatabaseKind, inOrder, type MigrationFile, type SqlFunction } from "./schema-files.ts";
import { noteFunctions, noteMigration } from "./schema-record.ts";

const LOCK_TIMEOUT_MS = 2_000;
/** A concurrent statement does not block other sessions, so it may wait long for older transactions. */
const CONCURRENT_LOCK_TIMEOUT_MS = 60_000;

/** From this server version on, `create table` accepts the storage of a column. */
const STORAGE_IN_CREATE = 160_000;

export interface MigrationTarget {
  readonly client: pg.Client;
  readonly kind: DatabaseKind;
  /** All functions of this version. Migrations may require some of them. */
  readonly functions: readonly SqlFunction[];
}

export async function applyMigration(
  target: MigrationTarget,
  migration: MigrationFile,
  lockTimeoutMs?: number,
): Promise<void> {
  if (migration.concurrent) await applyOneByOne(target, migration, lockTimeoutMs);
  else
    await inTransaction(target.client, lockTimeoutMs, async () => {
      await createRequired(target, migration);
      await target.client.query(forServer(migration.sql, await serverVersion(target.client)));
      await noteMigration(target.client, target.kind, migration);
    });
}

/**
 * Gives the database the present texts of all these functions, or of none. They are replaced in place: statements that are running end with
 * the text that they began with.
 */
export async function applyFunctions(
  client: pg.Client,
  functions: readonly SqlFunction[],
  lockTimeoutMs?: number,
): Promise<void> {
  await inTransaction(client, lockTimeoutMs, async () => {
    for (const { name, sql } of functions)
      await client.query(sql).catch((error: unknown) => {
        throw Object.assign(error as Error, { message: `the function ${name}: ${(error as Error).message}` });
      });
    await noteFunctions(client, functions);
  });
}

/**
 * Creates the functions that a migration's statements name. Their bodies are not checked yet, since they may name tables of later
 * migrations. Nothing is recorded, so the functions are created again with the others, and are then checked.
 */
async function createRequired({ client, functions }: MigrationTarget, migration: MigrationFile): Promise<void> {
  if (migration.requires.length === 0) return;
  await client.query("set local check_function_bodies = off");
  for (const { sql } of inOrder(functions, migration.requires)) await client.query(sql);
  await client.query("set local check_function_bodies = on");
}

async function inTransaction(
  client: pg.Client,
  lockTimeoutMs: number | undefined,
  work: () => Promise<void>,
): Promise<void> {
  await client.query("begin");
  try {
    await client.query(`set local lock_timeout = ${Math.round(lockTimeoutMs ?? LOCK_TIMEOUT_MS)}`);
    await work();
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

async function applyOneByOne(target: MigrationTarget, migration: MigrationFile, lockTimeoutMs?: number): Promise<void> {
  const { client, kind } = target;
  await inTransaction(client, lockTimeoutMs, () => createRequired(target, migration));
  await client.query(`set lock_timeout = ${Math.round(lockTimeoutMs ?? CONCURRENT_LOCK_TIMEOUT_MS)}`);
  try {
    for (const statement of migration.sql.split(/;[ \t]*$/m)) {
      if (statement.replace(/^\s*--.*$/gm, "").trim() !== "") await client.query(statement);
    }
    await noteMigration(client, kind, migration);
  } finally {
    await client.query("reset lock_timeout");
  }
}

async function serverVersion(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ server_version_num: string }>("show server_version_num");
  return Number(rows[0]?.server_version_num);
}

/** The text of a migration in the syntax of this server's version. Its checksum is that of the file. */
function forServer(sql: string, version: number): string {
  return version >= STORAGE_IN_CREATE ? sql : sql.replace(/ bytea storage external\b/g, " bytea");
}
