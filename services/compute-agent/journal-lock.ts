import { hostname } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { JournalError } from "./journal.ts";

/** Two processes that try at the same moment may each overwrite the other's entry, so the lock is tried this often. */
const TRIES_MAX = 5;

interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly since: string;
}

/**
 * Keeps a second process away from a journal. The lock is an operating system lock on a file beside the journal, held by an open SQLite
 * transaction. So it ends with the process, however the process ends, and another process with the same id is not mistaken for its holder.
 * The file names the holder.
 */
export class JournalLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Takes the lock. Throws a JournalError that names the process which holds it. */
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

/**
 * Takes the lock on the file. Returns false if another process took it between the two transactions, and throws if another process holds
 * it.
 */
function isTaken(database: DatabaseSync): boolean {
  const { pid } = process;
  database.exec(
    "begin immediate; create table if not exists holder (pid int, host text, since text); delete from holder",
  );
  const write = database.prepare("insert into holder values (?, ?, ?)");
  write.run(pid, hostname(), new Date().toISOString());
  // Other processes read the committed row. The second transaction stays open and keeps them from writing.
  database.exec("commit; begin immediate");
  if (readHolder(database)?.pid === pid) return true;
  database.exec("rollback");
  return false;
}

function readHolder(database: DatabaseSync): Holder | null {
  try {
    return (database.prepare("select pid, host, since from holder").get() as unknown as Holder | undefined) ?? null;
  } catch {
    // The table does not exist yet, because another process is just creating it.
    return null;
  }
}

function inUse(journal: string, holder: Holder | null, cause: unknown): JournalError {
  const by = holder === null ? "another process" : `process ${holder.pid} on ${holder.host} since ${holder.since}`;
  const remedy = "stop that process, or give this agent its own --agent-id or --data-dir";
  const message = `the journal ${journal} is in use by ${by}, and two agents must not share one: ${remedy}`;
  return new JournalError("locked", message, { cause });
}

/** Whether the error is SQLITE_BUSY. */
const isBusy = (error: unknown): boolean => (error as { readonly errcode?: number }).errcode === 5;
