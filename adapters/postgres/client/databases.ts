import pg from "pg";
import { PrimaryClient } from "./primary-client.ts";

/** Creates the database unless it exists. `adminUrl` names any other database of the same server. Repeatable. */
export async function ensureDatabase(adminUrl: string, name: string): Promise<void> {
  await withClient(adminUrl, async (client) => {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [name]);
    if (rowCount !== 0) return;
    try {
      await client.query(`create database ${pg.escapeIdentifier(name)}`);
    } catch (error) {
      // Another process created the same database meanwhile: duplicate_database, or unique_violation in the catalogue.
      if (!["42P04", "23505"].includes((error as { code?: string }).code ?? "")) throw error;
    }
  });
}

/**
 * Creates a database as a copy of `template`, to which no session may be connected. Cost: some 30 ms. The files are copied as they are: to
 * write all pages into the log, which is the default, takes three times as much CPU for a small template on a server without fsync.
 */
export async function cloneDatabase(adminUrl: string, template: string, name: string): Promise<void> {
  await withClient(adminUrl, async (client) => {
    await client.query(
      `create database ${pg.escapeIdentifier(name)} template ${pg.escapeIdentifier(template)} strategy file_copy`,
    );
  });
}

/** Ends every session of the database and removes it. */
export async function dropDatabase(adminUrl: string, name: string): Promise<void> {
  await withClient(adminUrl, async (client) => {
    await client.query(`drop database if exists ${pg.escapeIdentifier(name)} with (force)`);
  });
}

/**
 * Lends one connection to `work`. A statement is given up after `queryMsMax`, or, without that option, only when the connection is lost.
 */
export async function withClient<Result>(
  url: string,
  work: (client: pg.Client) => Promise<Result>,
  queryMsMax?: number,
): Promise<Result> {
  const client = await openClient(url, queryMsMax);
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Opens a connection that the caller ends. A statement is given up after `queryMsMax`, or, without that option, only when the connection is lost. */
export async function openClient(url: string, queryMsMax?: number): Promise<pg.Client> {
  const client = new PrimaryClient({
    connectionString: url,
    application_name: "berth admin",
    connectionTimeoutMillis: 5_000,
    ...(queryMsMax !== undefined && { query_timeout: queryMsMax }),
  });
  await client.connect();
  return client;
}
