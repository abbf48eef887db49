import type { ClientBase } from "pg";
import type { HealOutcome } from "../../../core/audit/healing.ts";
import { withClient } from "../client/databases.ts";
import { retryConflicts } from "../client/transaction.ts";

/** Waiting for the locks of a living system ends here; then the healing fails, and changes nothing. */
const LOCK_TIMEOUT_MS = 10_000;

/** One healing in one transaction of its own, which is kept only if it healed something and is no dry run. */
export function inHealing(
  databaseUrl: string,
  isDryRun: boolean,
  work: (client: ClientBase) => Promise<HealOutcome>,
): Promise<HealOutcome> {
  return retryConflicts(() =>
    withClient(databaseUrl, async (client) => {
      await client.query("begin");
      await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
      // An error ends the connection, and the transaction with it.
      const outcome = await work(client);
      await client.query(outcome.kind === "healed" && !isDryRun ? "commit" : "rollback");
      return outcome;
    }),
  );
}
