import type { Pool } from "pg";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";

/** How long a close waits for statements that the database has not answered. */
const POOL_END_MS = 500;

/**
 * Ends a pool of a service that closes. A statement waits up to 35 s for a database that does not answer, which is longer than the time that a process has to end.
 * So the pool is left to itself after half a second: it closes a connection when its statement ends, or the process does. Repeatable.
 */
export async function endPool(pool: Pool): Promise<void> {
  if (pool.ending) return;
  try {
    await withDeadline(pool.end(), POOL_END_MS, "ending the connections to the database");
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
  }
}
