import type { Client } from "pg";
import { withClient } from "./databases.ts";

/** A session that holds a lock for which another session waits. */
export interface Blocker {
  /** 0 stands for a prepared transaction, which has no session. */
  readonly pid: number;
  /** The database that it is connected to, which may be another one of the same server. */
  readonly database: string;
  readonly application: string;
  readonly user: string;
  /** How long its transaction has been open, in seconds. Null where this user may not see that. */
  readonly openForS: number | null;
  readonly query: string;
}

const LOOK_EVERY_MS = 200;
/** The time limit of a check, since the watched work waits for the last check to end. */
const LOOK_MS_MAX = 2_000;
const QUERY_CHARS_MAX = 80;

/** The sessions that this one waits for at the moment, as Postgres reports them. Empty when it does not wait. */
export async function blockersOf(url: string, pid: number): Promise<readonly Blocker[]> {
  const ask = async (client: Client) => {
    const { rows } = await client.query<Blocker>(
      `select b.pid, coalesce(a.datname::text, '') as database, coalesce(a.application_name, '') as application,
         coalesce(a.usename::text, '') as user, floor(extract(epoch from clock_timestamp() - a.xact_start))::int as "openForS",
         coalesce(a.query, '') as query
       from (select distinct unnest(pg_blocking_pids($1)) as pid) b left join pg_stat_activity a on a.pid = b.pid
       order by a.xact_start`,
      [pid],
    );
    return rows;
  };
  return withClient(url, ask, LOOK_MS_MAX);
}

/**
 * Checks repeatedly which sessions block the session while `work` runs. `onBlocked` is called with the blockers that a check found, if
 * there are any.
 */
export async function watchBlockers<Result>(
  session: { readonly url: string; readonly pid: number; readonly lookEveryMs?: number },
  work: () => Promise<Result>,
  onBlocked: (blockers: readonly Blocker[]) => void,
): Promise<Result> {
  let looking: Promise<void> | null = null;
  const look = async (): Promise<void> => {
    // A failed check tells nothing. The next one follows.
    const found = await blockersOf(session.url, session.pid).catch(() => []);
    if (found.length > 0) onBlocked(found);
  };
  const timer = setInterval(() => {
    looking ??= look().finally(() => {
      looking = null;
    });
  }, session.lookEveryMs ?? LOOK_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    await looking;
  }
}

/** A text for people: `pid 4711 (pg_dump, user postgres, database cell, transaction open for 812 s): COPY public.requests …`. */
export function describeBlocker({ pid, database, application, user, openForS, query }: Blocker): string {
  if (pid === 0) return "a prepared transaction (see pg_prepared_xacts)";
  const statement = query.replace(/\s+/g, " ").trim().slice(0, QUERY_CHARS_MAX);
  const about = [
    application || "unnamed application",
    `user ${user || "unknown"}`,
    `database ${database || "unknown"}`,
    openForS === null ? "open for an unknown time" : `transaction open for ${openForS} s`,
  ];
  return `pid ${pid} (${about.join(", ")})${statement === "" ? "" : `: ${statement}`}`;
}
