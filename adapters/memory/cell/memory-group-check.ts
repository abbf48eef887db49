import {
  checkGroup,
  type GroupConflict,
  isHardGroup,
  isSettled,
  type MembersOnHost,
  placesOf,
} from "../../../core/tasks/group-rule.ts";
import type { ServerGroupMembership } from "../../../proto/gen/berth/shared.ts";
import type { CellState, CellTransaction, MigrationRow } from "./cell-state.ts";

/**
 * Why the rule of its group keeps a server off this host, given where the group's other servers are or are moving to. Null when it may go
 * there.
 */
export function groupConflictOf(
  tx: CellTransaction,
  serverUuid: string,
  group: ServerGroupMembership | undefined,
  host: string,
): GroupConflict | null {
  if (!isHardGroup(group)) return null;
  const moves = openMoves(tx.cell);
  const members = new Map<string, MembersOnHost>();
  for (const server of tx.cell.servers.values()) {
    if (server.uuid === serverUuid || server.spec.group?.uuid !== group.uuid) continue;
    const settled = isSettled(server) ? 1 : 0;
    for (const place of placesOf(server.host, moves.get(server.uuid) ?? null)) {
      const before = members.get(place) ?? { servers: 0, settled: 0 };
      members.set(place, { servers: before.servers + 1, settled: before.settled + settled });
    }
  }
  return checkGroup(group, host, members);
}

/** The open moves by server UUID. A server has at most one move at a time. */
function openMoves(cell: CellState): ReadonlyMap<string, MigrationRow> {
  const open = [...cell.migrations.values()].filter((row) => !row.ended);
  return new Map(open.map((row) => [row.serverUuid, row]));
}
