import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { type Blocker, describeBlocker, watchBlockers } from "../client/lock-blockers.ts";
import { MigrateError } from "./migrate-error.ts";

export interface LockPatience {
  /** How long a statement waits for a lock. All later statements on the same table wait as long. 2,000 by default. */
  readonly lockTimeoutMs?: number;
  /** How often it tries to get its locks, 20 by default. */
  readonly triesMax?: number;
  /** The pause between two tries, in which other transactions proceed. 3,000 by default. */
  readonly pauseMs?: number;
  /** Called when a step did not get a lock and will be tried again. */
  readonly onBlocked?: (what: string, blockers: readonly string[]) => void;
}

const TRIES_MAX = 20;
const PAUSE_MS = 3_000;

/** SQLSTATEs of a lock that was not granted in time and of a deadlock. */
const NO_LOCK = ["55P03", "40P01"];

/** Runs `apply` in the client's session until it gets its locks. Throws `MigrateError` when it has not got them after all tries. */
export async function applyPatiently(
  { client, url }: { readonly client: pg.Client; readonly url: string },
  what: string,
  options: LockPatience,
  apply: () => Promise<void>,
): Promise<void> {
  const triesMax = options.triesMax ?? TRIES_MAX;
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const session = { url, pid: rows[0]!.pid };
  let blockers: readonly Blocker[] = [];
  for (let tries = 1; ; tries += 1) {
    try {
      await watchBlockers(session, apply, (found) => {
        blockers = found;
      });
      return;
    } catch (error) {
      if (!NO_LOCK.includes((error as { readonly code?: string }).code ?? ""))
        throw new Error(`${what} failed: ${(error as Error).message}`, { cause: error });
      if (tries >= triesMax) throw blockedBy(what, tries, blockers);
      options.onBlocked?.(what, blockers.map(describeBlocker));
      await delay(options.pauseMs ?? PAUSE_MS);
    }
  }
}

function blockedBy(what: string, tries: number, blockers: readonly Blocker[]): MigrateError {
  const who = blockers.length === 0 ? "sessions that ended meanwhile" : blockers.map(describeBlocker).join("; ");
  const how = blockers.map(({ pid }) => `\`select pg_terminate_backend(${pid})\``).join(", ");
  return new MigrateError(
    "blocked",
    `${what} did not get all locks in ${tries} tries. They are held by ${who}. Wait until these have ended` +
      `${how === "" ? "" : ` (or end it with ${how})`}, then run \`berth db migrate\` again. The database was not changed, ` +
      "and services continue to work.",
  );
}
