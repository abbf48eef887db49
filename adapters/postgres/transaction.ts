import type { Pool, PoolClient } from "pg";

/** SQLSTATEs after which the same transaction may well succeed: serialization failure, deadlock. */
const RETRYABLE = new Set(["40001", "40P01"]);
const MAX_TRIES = 5;

/**
 * Runs `work` in a transaction (read committed): committed when it resolves, rolled back when it throws. Run anew, at most
 * five times in all, when Postgres chose it as the victim of a deadlock; so `work` may have no effect but on the database.
 */
export async function inTransaction<Result>(pool: Pool, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      await client.query("begin");
      const result = await work(client);
      await client.query("commit");
      return result;
    } catch (error) {
      await client.query("rollback").catch((rollbackError: Error) => {
        broken = rollbackError;
      });
      const code = (error as { code?: string }).code ?? "";
      if (!RETRYABLE.has(code) || tries >= MAX_TRIES) throw error;
    } finally {
      client.release(broken);
    }
  }
}
