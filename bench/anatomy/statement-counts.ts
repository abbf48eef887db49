import { withClient } from "../../adapters/postgres/client/databases.ts";

/** The work of one statement on a server, summed over its databases and users. */
export interface StatementCount {
  readonly text: string;
  readonly calls: number;
  /** Milliseconds of execution, with the waits in it. */
  readonly ms: number;
  readonly rows: number;
  readonly walBytes: number;
}

/** Settings of a Postgres that can count its statements. */
export const COUNTING_SETTINGS = { shared_preload_libraries: "pg_stat_statements" };

/** Counts the statements that clients send from now on. `url` is a database of the server. */
export async function startCounting(url: string): Promise<void> {
  await setTrack(url, "top");
  await withClient(url, (client) => client.query("select pg_stat_statements_reset()"));
}

/** Ends the counting, and resolves with the statements, the longest first. */
export async function stopCounting(url: string): Promise<readonly StatementCount[]> {
  await setTrack(url, "none");
  const { rows } = await withClient(url, (client) =>
    client.query<{ [Field in keyof StatementCount]: string }>(
      `select query as text, sum(calls) as calls, sum(total_exec_time) as ms, sum(rows) as rows, sum(wal_bytes) as "walBytes"
       from pg_stat_statements where query not like '%pg_stat_statements%' and query not like '%pg_stat_activity%'
       group by query order by ms desc`,
    ),
  );
  return rows.map((row) => ({
    ...{ text: row.text.replaceAll(/\s+/g, " ").trim(), calls: Number(row.calls), ms: Number(row.ms) },
    ...{ rows: Number(row.rows), walBytes: Number(row.walBytes) },
  }));
}

/** Installs the functions that read the counts. Nothing is counted, and counting costs nothing, until `startCounting`. */
export async function prepareCounting(url: string): Promise<void> {
  await setTrack(url, "none");
  await withClient(url, (client) => client.query("create extension if not exists pg_stat_statements"));
}

async function setTrack(url: string, track: "none" | "top"): Promise<void> {
  await withClient(url, async (client) => {
    // A setting of the server, since a database's would count only for new sessions.
    await client.query(`alter system set pg_stat_statements.track = '${track}'`);
    await client.query("select pg_reload_conf()");
  });
}
