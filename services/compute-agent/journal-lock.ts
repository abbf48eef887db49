import { hostname } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { JournalError } from "./journal.ts";

/** Two processes that try at the same moment may each find the other in the way. */
const TRIES_MAX = 5;

interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly since: string;
}

/**
 * Keeps a second process off a journal. The lock is one of the operating system's on a file beside the journal, held by an open transaction
 * of SQLite, so it ends with the process, however that ends, and does not mistake another process with the same id for its holder. The file
 * says who holds it.
 */
export class JournalLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Throws a JournalError that names the process which has the lock. */
  static take(journal: string): JournalLock {
    const path = `${journal}.lock`;
    let database: DatabaseSync | null = null;
    try {
      database = new DatabaseSync(path, { timeout: 0 });
      for (let tries = 0; tries < TRIES_MAX; tries += 1) if (isTaken(database)) return new JournalLock(database);
      throw inUse(journal, readHolder(database), null);
    } catch (error) {
      const holder = database === null ? null : readHolder(database);
      database?.close();
      if (error instanceof JournalError) throw error;
      if (isBusy(error)) throw inUse(journal, holder, error);
      throw new JournalError("io", `cannot lock the journal ${journal} by the file ${path}`, { cause: error });
    }
  }

  release(): void {
    this.#database.close();
  }
}

/** Throws if somebody else has the lock. False: somebody came in between. */
function isTaken(database: DatabaseSync): boolean {
  const { pid } = process;
  database.exec(
    "begin immediate; create table if not exists holder (pid int, host text, since text); delete from holder",
  );
  const write = database.prepare("insert into holder values (?, ?, ?)");
  write.run(pid, hostname(), new Date().toISOString());
  // Others read what was committed while the second transaction, which is never ended, keeps them from writing.
  database.exec("commit; begin immediate");
  if (readHolder(database)?.pid === pid) return true;
  database.exec("rollback");
  return false;
}

function readHolder(database: DatabaseSync): Holder | null {
  try {
    return (database.prepare("select pid, host, since from holder").get() as unknown as Holder | undefined) ?? null;
  } catch {
    // It is being written for the first time.
    return null;
  }
}

function inUse(journal: string, holder: Holder | null, cause: unknown): JournalError {
  const by = holder === null ? "another process" : `process ${holder.pid} on ${holder.host} since ${holder.since}`;
  const remedy = "stop that process, or give this agent an --agent-id or a --data-dir of its own";
  const message = `the journal ${journal} is in use by ${by}, and two agents must not share one: ${remedy}`;
  return new JournalError("locked", message, { cause });
}

/** SQLITE_BUSY. */
const isBusy = (error: unknown): boolean => (error as { readonly errcode?: number }).errcode === 5;
