import { readFileSync } from "node:fs";
import { createConnection } from "mysql2/promise";
import pg from "pg";

/** A value as either driver may return it. Sums are returned as text. */
export type SourceValue = string | number | null;
export type SourceRow = Readonly<Record<string, SourceValue>>;

/** An upstream Placement database, as it stood when it was opened. Statements must fit MySQL and PostgreSQL alike. */
export interface Source {
  /** Address of the database, without user and password. */
  readonly label: string;
  query(sql: string): Promise<readonly SourceRow[]>;
  /** The expression for a timestamp column (of UTC, as upstream writes them) in seconds since the epoch. */
  epoch(column: string): string;
  /** The expression for the schema in which the tables are. */
  readonly schema: string;
  close(): Promise<void>;
}

export const SOURCE_SCHEMES = ["mysql", "mysql+pymysql", "postgresql", "postgres", "postgresql+psycopg2"] as const;

/**
 * Opens the database of a URL, which may have the form used in placement.conf, for reading in one transaction: all statements see the same
 * moment, and nothing can be written.
 */
export function openSource(url: string): Promise<Source> {
  const parsed = new URL(url);
  const scheme = parsed.protocol.replace(/(\+\w+)?:$/, "");
  return scheme === "mysql" ? openMysql(parsed) : openPostgres(parsed);
}

const labelOf = (url: URL): string => `${url.host}${url.pathname}`;

async function openPostgres(url: URL): Promise<Source> {
  const plain = new URL(url.href.replace(/^[^:]+:/, "postgresql:"));
  const client = new pg.Client({
    connectionString: plain.href,
    application_name: "berth import-placement",
    connectionTimeoutMillis: 10_000,
  });
  // When a connection is lost between two queries, the next query rejects. Without a listener the event would end the process.
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
  } catch (error) {
    await client.end();
    throw error;
  }
  return {
    label: labelOf(url),
    query: async (sql) => (await client.query<SourceRow>(sql)).rows,
    schema: "current_schema()",
    epoch: (column) => `extract(epoch from ${column})::float8`,
    close: () => client.end(),
  };
}

async function openMysql(url: URL): Promise<Source> {
  const socketPath = url.searchParams.get("unix_socket");
  const caFile = url.searchParams.get("ssl_ca");
  const connection = await createConnection({
    ...(socketPath === null ? { host: url.hostname, port: Number(url.port || 3306) } : { socketPath }),
    ...(caFile === null ? {} : { ssl: { ca: readFileSync(caFile, "utf8") } }),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
    connectTimeout: 10_000,
    supportBigNumbers: true,
  });
  try {
    await connection.query("set session time_zone = '+00:00', session transaction isolation level repeatable read");
  } catch {
    // Older servers need two separate statements.
    await connection.query("set session time_zone = '+00:00'");
    await connection.query("set session transaction isolation level repeatable read");
  }
  await connection.query("start transaction with consistent snapshot, read only");
  return {
    label: labelOf(url),
    query: async (sql) => (await connection.query(sql))[0] as unknown as readonly SourceRow[],
    schema: "database()",
    epoch: (column) => `unix_timestamp(${column})`,
    close: () => connection.end(),
  };
}
