import type { Home, HostReport, HostSighting } from "../../core/cell/cell-store.ts";
import { UNKNOWN_HYPERVISOR } from "../../core/cell/hypervisor-facts.ts";
import { providerUuid } from "../../core/ledger/ids.ts";
import type { RowChange } from "../../core/ledger/row-change.ts";
import type { CellState, CellTransaction, HostRow, MigrationRow, ServerRow } from "./memory-cell-state.ts";

export function hostUpStep(tx: CellTransaction, agentId: string, { name, rootProvider, hypervisor }: HostReport): void {
  const before = tx.cell.hosts.get(name);
  const up = !tx.cell.forcedDown.has(name);
  const after: HostRow = {
    ...{ name, rootProvider, agentId, up },
    upAtMs: before?.up ? before.upAtMs : tx.nowMs,
    disabled: before?.disabled ?? false,
    hypervisor: hypervisor ?? before?.hypervisor ?? UNKNOWN_HYPERVISOR,
  };
  tx.cell.hosts.set(name, after);
  const told = JSON.stringify(before && hostChange(before));
  if (told !== JSON.stringify(hostChange(after))) tx.emit(hostChange(after));
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
export function hostChange({ name, rootProvider, up, disabled, hypervisor }: HostRow): RowChange {
  return { kind: "host-put", host: name, provider: providerUuid(rootProvider), up, disabled, hypervisor };
}

/** Where the server is at home; null when there is none or its row only shuts a door. */
export function homeOf(cell: CellState, row: ServerRow | undefined): Home | null {
  if (row === undefined || row.status === "CLOSED") return null;
  const tasks = cell.tasksByServer.get(row.uuid) ?? [];
  const migration = [...cell.migrations.values()].find((one) => one.serverUuid === row.uuid && !one.ended);
  return {
    serverUuid: row.uuid,
    status: row.status,
    host: row.host,
    attemptId: row.attemptId,
    revision: row.revision,
    busy: tasks.some((task) => task.kind !== "build" && task.endedAtMs === null),
    move: migration === undefined ? null : moveOf(migration),
  };
}

function moveOf(migration: MigrationRow): Home["move"] {
  const { uuid, kind, sourceHost, sourceAttemptId, destHost, destAttemptId, runs } = migration;
  const source =
    sourceHost === null || sourceAttemptId === null ? null : { host: sourceHost, attemptId: sourceAttemptId };
  return { uuid, kind, source, dest: { host: destHost, attemptId: destAttemptId }, runs };
}
