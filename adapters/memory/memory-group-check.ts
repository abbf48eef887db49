import { checkGroup, type GroupConflict, isHardGroup } from "../../core/cell/group-rule.ts";
import type { ServerGroupMembership } from "../../proto/gen/berth/shared.ts";
import type { CellTransaction } from "./memory-cell-state.ts";

/** What a server's group says against its going to the host, by where the group's other servers are. Null: nothing. */
export function groupConflictOf(
  tx: CellTransaction,
  serverUuid: string,
  group: ServerGroupMembership | undefined,
  host: string,
): GroupConflict | null {
  if (!isHardGroup(group)) return null;
  const members = new Map<string, number>();
  for (const server of tx.cell.servers.values()) {
    if (server.host === null || server.uuid === serverUuid || server.spec.group?.uuid !== group.uuid) continue;
    members.set(server.host, 1 + (members.get(server.host) ?? 0));
  }
  return checkGroup(group, host, members);
}
