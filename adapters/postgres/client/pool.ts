import pg from "pg";
import { PrimaryClient } from "./primary-client.ts";
import { VALUE_TYPES } from "./value-types.ts";

export interface PoolOptions {
  readonly url: string;
  /** The name in pg_stat_activity: the service, and which of its processes. */
  readonly applicationName: string;
  /** The most connections, 10 by default. */
  readonly connectionsMax?: number;
  /** Postgres gives up a statement after this time, 30,000 by default. */
  readonly statementTimeoutMs?: number;
  /** A connection that is not made, or not free, within this time is given up, 5,000 by default. */
  readonly connectMs?: number;
  /** A connection that was not used for this time is closed, unless it is the pool's last one; 30,000 by default. */
  readonly idleMs?: number;
  /** The pool's statements find rows by keys and read no whole table that has an index for them: see `BY_KEYS`. False by default. */
  readonly findsByKeys?: boolean;
  /** Called with the error of a connection that broke while idle. The pool replaces the connection by itself. */
  readonly onConnectionLost?: (error: Error) => void;
}

/**
 * A connection keeps the plan of a prepared statement until the table's statistics are next updated. A plan that was made when the table
 * was nearly empty reads the whole table, and does so for minutes while the table grows. JIT is off because before Postgres 18 a plan that
 * must read a whole table all the same counts as so costly that it would be compiled.
 */
const BY_KEYS = "-c enable_seqscan=off -c enable_mergejoin=off -c jit=off";

/**
 * A pool of connections in which everything has a limit: connecting, waiting for a connection (5 s by default), a statement, and a transaction that is
 * left open. Connects when it is first used, and then keeps one connection until it ends. Of several servers in the URL it uses the one that
 * accepts writes.
 */
export function createPool(options: PoolOptions): pg.Pool {
  const statementTimeoutMs = options.statementTimeoutMs ?? 30_000;
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.connectionsMax ?? 10,
    connectionTimeoutMillis: options.connectMs ?? 5_000,
    idleTimeoutMillis: options.idleMs ?? 30_000,
    // A new session logs in and plans all of its statements again, which a lone call in a quiet cloud would wait for.
    min: 1,
    statement_timeout: statementTimeoutMs,
    // Covers a server that went silent: statement_timeout needs one that still answers.
    query_timeout: statementTimeoutMs + 5_000,
    idle_in_transaction_session_timeout: statementTimeoutMs,
    // Linux asks an idle peer for a sign of life after two hours by default, and the pool may keep a connection for as long. A router that has
    // forgotten the connection by then lets the next statement wait in vain.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    ...(options.findsByKeys && { addedOptions: BY_KEYS }),
    types: VALUE_TYPES,
    // node-pg's types know no client class with constructor options. The pool passes its own options to the client.
    Client: PrimaryClient as unknown as new () => pg.Client,
  });
  // The pool emits the errors of its idle connections; without a listener one of them would end the process.
  pool.on("error", (error) => options.onConnectionLost?.(error));
  return pool;
}
