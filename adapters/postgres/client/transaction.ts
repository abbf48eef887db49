import type { Pool, PoolClient } from "pg";

/** SQLSTATEs after which the same transaction may succeed: serialization failure and deadlock. */
const CONFLICTS = ["40001", "40P01"];
const TRIES_MAX = 5;

/** Errors of commits. Whether such a transaction was committed is not known for certain. */
const OF_COMMITS = new WeakSet<Error>();

/** Whether the error came while `inTransaction` committed, so that the transaction may have been committed. */
export function isOfCommit(error: Error): boolean {
  return OF_COMMITS.has(error);
}

/**
 * Runs `work` in a transaction (read committed), which is committed when `work` resolves and rolled back when it throws. Conflicts are
 * retried as in `retryConflicts`, so `work` must have no effect except on the database.
 */
export function inTransaction<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
  moreConflicts: readonly string[] = [],
): Promise<Result> {
  return retryConflicts(() => runOnce(pool, work), moreConflicts);
}

/**
 * Repeats a whole transaction, at most five times in all, when Postgres ended it with a conflict. `more` lists other SQLSTATEs that are
 * conflicts for this transaction.
 */
export async function retryConflicts<Result>(
  transaction: () => Promise<Result>,
  more: readonly string[] = [],
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await transaction();
    } catch (error) {
      const code = (error as { code?: string }).code ?? "";
      if (tries >= TRIES_MAX || !(CONFLICTS.includes(code) || more.includes(code))) throw error;
    }
  }
}

async function runOnce<Result>(pool: Pool, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit").catch((error: Error) => {
      OF_COMMITS.add(error);
      throw error;
    });
    return result;
  } catch (error) {
    await client.query("rollback").catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}
