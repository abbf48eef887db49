import type { PoolClient } from "pg";
import { MOVE_BROKEN_OFF } from "../../../core/stores/cell/operation-store.ts";
import { SERVER_UNCERTAIN } from "../../../core/stores/cell/quarantine.ts";
import { operationOf } from "../../../core/tasks/operation-record.ts";
import type { BeginOperation } from "../../../core/tasks/operation-step.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryRows } from "../client/store-query.ts";

/**
 * Servers in ERROR that may run elsewhere than at home, each with the reason why nothing begins: their last move was broken off, so their
 * allocations are not all at their home, or the database has lost commits about them. Every operation that begins in ERROR starts a guest.
 */
export async function readAstray(
  client: PoolClient,
  begins: readonly BeginOperation[],
): Promise<ReadonlyMap<string, string>> {
  const failed = begins.filter(({ status }) => status === "ERROR");
  if (failed.length === 0) return new Map();
  const rows = await queryRows<{ uuid: string; is_broken_off: boolean }>(client, {
    name: "servers_astray",
    text: `select s.uuid, m.uuid is not null as is_broken_off
      from servers s left join migrations m on m.server_uuid = s.uuid and not m.ended
      where s.uuid = any ($1) and (m.uuid is not null or s.uncertain_since is not null)`,
    values: [textArrayLiteral(failed.map(({ task }) => operationOf(task).server.uuid))],
  });
  return new Map(rows.map((row) => [row.uuid, row.is_broken_off ? MOVE_BROKEN_OFF : SERVER_UNCERTAIN]));
}
