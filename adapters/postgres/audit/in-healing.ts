import type { ClientBase } from "pg";
import type { HealOutcome } from "../../../core/audit/healing.ts";
import { withClient } from "../client/databases.ts";
import { retryConflicts } from "../client/transaction.ts";

/** How long a healing waits for the locks of a live system. After that it fails, and changes nothing. */
const LOCK_TIMEOUT_MS = 10_000;

/** Runs one healing in its own transaction, which is committed only if it healed something and is not a dry run. */
export function inHealing(
  databaseUrl: string,
  isDryRun: boolean,
  work: (client: ClientBase) => Promise<HealOutcome>,
): Promise<HealOutcome> {
  return retryConflicts(() =>
    withClient(databaseUrl, async (client) => {
      await client.query("begin");
      await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
      // An error ends the connection, and with it the transaction.
      const outcome = await work(client);
      await client.query(outcome.kind === "healed" && !isDryRun ? "commit" : "rollback");
      return outcome;
    }),
  );
}
