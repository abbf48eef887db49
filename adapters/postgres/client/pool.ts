import pg from "pg";
import { PrimaryClient } from "./primary-client.ts";

/** int8 columns as numbers: Berth's amounts stay far below 2^53. Set here, once, so that every pool and client reads alike. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === pg.types.builtins.INT8
      ? Number
      : pg.types.getTypeParser(oid, format as "text")) as typeof pg.types.getTypeParser,
};

export interface PoolOptions {
  readonly url: string;
  /** Shown in pg_stat_activity: which process of which service. */
  readonly applicationName: string;
  /** Most connections. 10 unless given. */
  readonly connectionsMax?: number;
  /** Postgres gives up a statement after so long. 30,000 unless given. */
  readonly statementTimeoutMs?: number;
  /** Its statements find rows by keys and read no table whole that has an index for them: see `BY_KEYS`. False unless given. */
  readonly findsByKeys?: boolean;
  /** Told of a connection that broke while idle; the pool replaces it by itself. */
  readonly onConnectionLost?: (error: Error) => void;
}

/**
 * A connection keeps the plan of a prepared statement until the table's statistics are next taken. One that it made when the
 * table was nearly empty reads all of it, and for minutes goes on to as it grows. Without JIT: before Postgres 18, a plan that
 * has to read a table whole all the same counts as so costly that it would be compiled.
 */
const BY_KEYS = "-c enable_seqscan=off -c enable_mergejoin=off -c jit=off";

/**
 * A pool of connections where everything has a limit: connecting, waiting for a connection (5 s), a statement, a transaction
 * left open. Connects when first used. Of several servers in the URL it uses the one that takes writes.
 */
export function createPool(options: PoolOptions): pg.Pool {
  const statementTimeoutMs = options.statementTimeoutMs ?? 30_000;
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.connectionsMax ?? 10,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 30_000,
    statement_timeout: statementTimeoutMs,
    // For a server that went silent: statement_timeout needs one that still answers.
    query_timeout: statementTimeoutMs + 5_000,
    idle_in_transaction_session_timeout: statementTimeoutMs,
    keepAlive: true,
    ...(options.findsByKeys && { addedOptions: BY_KEYS }),
    types,
    // Its types know no client that is told anything; it is told what the pool was.
    Client: PrimaryClient as unknown as new () => pg.Client,
  });
  // The pool emits the errors of its idle connections; without a listener one of them would end the process.
  pool.on("error", (error) => options.onConnectionLost?.(error));
  return pool;
}
