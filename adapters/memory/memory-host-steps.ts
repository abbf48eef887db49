import type { Home, HostSighting } from "../../core/cell/cell-store.ts";
import { providerUuid } from "../../core/ledger/ids.ts";
import type { RowChange } from "../../core/ledger/row-change.ts";
import type { CellState, CellTransaction, HostRow, ServerRow } from "./memory-cell-state.ts";

export function hostUpStep(
  tx: CellTransaction,
  agentId: string,
  host: { readonly name: string; readonly rootProvider: string },
): void {
  const before = tx.cell.hosts.get(host.name);
  const up = !tx.cell.forcedDown.has(host.name);
  const after: HostRow = { ...host, agentId, up, disabled: before?.disabled ?? false };
  tx.cell.hosts.set(host.name, after);
  if (before?.up !== up || before.rootProvider !== after.rootProvider) tx.emit(hostChange(after));
}

/** Touches an agent that is known. True: one of its hosts is down, so that it has to be welcomed anew. */
export function agentSeenStep(tx: CellTransaction, agentId: string): boolean {
  if (!tx.cell.agents.has(agentId)) return false;
  tx.cell.agents.set(agentId, tx.nowMs);
  const { hosts, forcedDown } = tx.cell;
  return [...hosts.values()].some((host) => host.agentId === agentId && !host.up && !forcedDown.has(host.name));
}

/** Takes down every host whose agent was not seen for `unseenMs`; the names of those that were up. */
export function expireStep(tx: CellTransaction, unseenMs: number): readonly string[] {
  const expired: string[] = [];
  for (const host of tx.cell.hosts.values()) {
    const seenAtMs = tx.cell.agents.get(host.agentId) ?? Number.NEGATIVE_INFINITY;
    if (!host.up || seenAtMs > tx.nowMs - unseenMs) continue;
    host.up = false;
    expired.push(host.name);
    tx.emit(hostChange(host));
  }
  return expired.sort();
}

/** Null: the cell does not know the host. */
export function sightingOf(cell: CellState, name: string, nowMs: number): HostSighting | null {
  const host = cell.hosts.get(name);
  if (host === undefined) return null;
  return { name, up: host.up, seenAgoMs: nowMs - (cell.agents.get(host.agentId) ?? Number.NEGATIVE_INFINITY) };
}

/** The host as a follower of the ledger sees it. */
export function hostChange({ name, rootProvider, up, disabled }: HostRow): RowChange {
  return { kind: "host-put", host: name, provider: providerUuid(rootProvider), up, disabled };
}

/** Where the server is at home; null when there is none or its row only shuts a door. */
export function homeOf(row: ServerRow | undefined): Home | null {
  if (row === undefined || row.status === "CLOSED") return null;
  return { serverUuid: row.uuid, status: row.status, host: row.host, attemptId: row.attemptId };
}
