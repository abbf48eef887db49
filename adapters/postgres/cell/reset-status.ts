import type { Pool } from "pg";
import type { ResetOutcome, StatusReset } from "../../../core/stores/cell/operation-store.ts";
import { inRounds } from "../client/in-rounds.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryStored } from "../client/store-query.ts";

interface ResetRow {
  readonly at: number;
  readonly outcome: ResetOutcome["kind"];
  readonly running: string | null;
}

/** Cost: one round trip. Checks for running tasks under the servers' locks, which every new operation takes, too. */
export function resetStatus(pool: Pool, resets: readonly StatusReset[]): Promise<readonly ResetOutcome[]> {
  return inRounds(
    resets,
    (reset) => reset.serverUuid,
    async (round) => {
      const rows = await queryStored<ResetRow>(pool, {
        name: "cell_reset_status",
        text: "select at, outcome, running from cell_reset_status($1, $2)",
        values: [
          textArrayLiteral(round.map((reset) => reset.serverUuid)),
          textArrayLiteral(round.map((reset) => reset.status)),
        ],
      });
      const outcomes: ResetOutcome[] = [];
      for (const row of rows) outcomes[row.at - 1] = outcomeOf(row);
      return outcomes;
    },
  );
}

function outcomeOf({ outcome, running }: ResetRow): ResetOutcome {
  return outcome === "busy" ? { kind: "busy", running: running ?? "" } : { kind: outcome };
}
