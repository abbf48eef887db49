import type { Pool } from "pg";
import type { UnreadableEnd, UnreadableOutcome } from "../../../core/stores/cell/cell-store.ts";
import { inRounds } from "../client/in-rounds.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { queryStored } from "../client/store-query.ts";

/** Cost: one round trip. */
export function endUnreadable(pool: Pool, ends: readonly UnreadableEnd[]): Promise<readonly UnreadableOutcome[]> {
  return inRounds(
    ends,
    ({ taskId }) => taskId,
    async (round) => {
      const rows = await queryStored<{ at: number; server_uuid: string }>(pool, {
        name: "cell_end_unreadable",
        text: "select at, server_uuid from cell_end_unreadable($1, $2, $3)",
        values: [
          textArrayLiteral(round.map(({ taskId }) => taskId)),
          arrayLiteral(round.map(({ epoch }) => epoch)),
          textArrayLiteral(round.map(({ reason }) => reason)),
        ],
      });
      const servers = new Map(rows.map((row) => [row.at, row.server_uuid]));
      return round.map((_, index): UnreadableOutcome => {
        const serverUuid = servers.get(index + 1);
        return serverUuid === undefined ? { kind: "fenced" } : { kind: "ended", serverUuid };
      });
    },
  );
}
