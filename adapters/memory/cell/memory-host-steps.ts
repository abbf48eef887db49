import { assert } from "../../../core/assert.ts";
import { UNKNOWN_HYPERVISOR } from "../../../core/ledger/hypervisor-facts.ts";
import { providerUuid } from "../../../core/ledger/ids.ts";
import { compare } from "../../../core/ledger/ledger-state.ts";
import type { RowChange } from "../../../core/ledger/row-change.ts";
import type { AgentsSeen, HostReport, HostSighting, KnownRoot } from "../../../core/stores/cell/cell-store.ts";
import { beginningsOf } from "../../../core/tasks/beginnings-of.ts";
import { type Expiry, type ExpiryLimit, expiryRoom } from "../../../core/tasks/expiry-limit.ts";
import type { Home } from "../../../core/tasks/home.ts";
import type { Host } from "../../../core/tasks/server.ts";
import type { CellState, CellTransaction, HostRow, MigrationRow, ServerRow } from "./cell-state.ts";

/** Returns the names of the unknown hosts that have no root provider. */
export function hostsUpStep(tx: CellTransaction, agentId: string, hosts: readonly HostReport[]): readonly string[] {
  tx.cell.agents.set(agentId, tx.nowMs);
  const isNew = ({ name }: HostReport) => !tx.cell.hosts.has(name);
  const roots = new Set<string>(hosts.some(isNew) ? tx.providers().map(({ uuid }) => uuid) : []);
  const rootless = new Set(
    hosts.filter((host) => isNew(host) && !roots.has(host.rootProvider)).map(({ name }) => name),
  );
  for (const host of hosts) if (!rootless.has(host.name)) hostUpStep(tx, agentId, host);
  return [...rootless].sort(compare);
}

function hostUpStep(tx: CellTransaction, agentId: string, { name, rootProvider, hypervisor }: HostReport): void {
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

/** Records that the agent is alive and carries these hosts, including hosts that another agent carried before. */
export function agentArrivedStep(tx: CellTransaction, agentId: string, hosts: readonly string[]): void {
  tx.cell.agents.set(agentId, tx.nowMs);
  for (const name of hosts) {
    const host = tx.cell.hosts.get(name);
    if (host !== undefined) tx.cell.hosts.set(name, { ...host, agentId });
  }
}

export function agentsSeenStep(tx: CellTransaction, agentIds: readonly string[], unseenMs: number): AgentsSeen {
  const { agents, hosts, forcedDown } = tx.cell;
  for (const id of agentIds) if (agents.has(id)) agents.set(id, tx.nowMs);
  const down = new Set<string>();
  let othersUnseen = false;
  for (const { name, agentId, up } of hosts.values()) {
    if (up) othersUnseen ||= !agentIds.includes(agentId) && seenAtMs(agents, agentId) <= tx.nowMs - unseenMs;
    else if (agentIds.includes(agentId) && agents.has(agentId) && !forcedDown.has(name)) down.add(agentId);
  }
  return { down: [...down].sort(compare), othersUnseen };
}

const seenAtMs = (agents: CellTransaction["cell"]["agents"], agentId: string): number =>
  agents.get(agentId) ?? Number.NEGATIVE_INFINITY;

/** Marks the hosts as down whose agents were not seen for `unseenMs`, at most `limit` of them. */
export function expireStep(tx: CellTransaction, unseenMs: number, limit: ExpiryLimit): Expiry {
  const { hosts, agents, forcedDown } = tx.cell;
  const seenMs = (host: HostRow) => seenAtMs(agents, host.agentId);
  const unseen = [...hosts.values()]
    .filter((host) => host.up && seenMs(host) <= tx.nowMs - unseenMs)
    .sort((a, b) => seenMs(a) - seenMs(b) || compare(a.name, b.name));
  const counted = [...hosts.values()].filter(({ name }) => !forcedDown.has(name));
  const down = counted.filter((host) => !host.up && !host.disabled).length;
  const room = expiryRoom({ hosts: counted.length, down }, limit);
  for (const host of unseen.slice(0, room)) {
    host.up = false;
    tx.emit(hostChange(host));
  }
  const namesOf = (rows: readonly HostRow[]) => rows.map(({ name }) => name).sort(compare);
  return { down: namesOf(unseen.slice(0, room)), heldUp: namesOf(unseen.slice(room)) };
}

/** Null when the cell does not know the host. */
export function sightingOf(cell: CellState, name: string, nowMs: number): HostSighting | null {
  const host = cell.hosts.get(name);
  if (host === undefined) return null;
  const forcedDown = cell.forcedDown.has(name);
  return {
    name,
    agentId: host.agentId,
    up: host.up,
    forcedDown,
    seenAgoMs: nowMs - (cell.agents.get(host.agentId) ?? Number.NEGATIVE_INFINITY),
  };
}

/** For each uuid, the provider of that uuid and the hosts that have it as their root. */
export function knownRootsOf(
  cell: CellState,
  providers: readonly { readonly uuid: string; readonly name: string }[],
  uuids: readonly string[],
): readonly KnownRoot[] {
  const names = new Map(providers.map(({ uuid, name }) => [uuid, name] as const));
  const hosts = Map.groupBy(cell.hosts.values(), (host) => host.rootProvider);
  return uuids.map((uuid) => ({
    name: names.get(uuid) ?? null,
    hosts: (hosts.get(uuid) ?? []).map((host) => host.name).sort(),
  }));
}

/** A host of another agent such that one of the two names continues the other one with `_`, or null. Null for a host that is known. */
export function hostNamedAlike(cell: CellState, { name, agentId }: Pick<HostRow, "name" | "agentId">): string | null {
  if (cell.hosts.has(name)) return null;
  const others = [...cell.hosts.values()].filter((host) => host.agentId !== agentId).map((host) => host.name);
  const beginnings = beginningsOf(name);
  return (
    beginnings.find((beginning) => others.includes(beginning)) ??
    others.filter((other) => beginningsOf(other).includes(name)).sort(compare)[0] ??
    null
  );
}

/** The host as a follower of the ledger sees it. */
export function hostChange({ name, rootProvider, up, disabled, hypervisor }: HostRow): RowChange {
  return { kind: "host-put", host: name, provider: providerUuid(rootProvider), up, disabled, hypervisor };
}

/** The server's home, or null when it has none or when its row only marks the UUID as closed. */
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
  assert(kind !== "leftover", "a leftover is no move that goes on");
  return { uuid, kind, source, dest: { host: destHost, attemptId: destAttemptId }, runs };
}

/** Sorted by name. */
export function hostsInCell(cell: CellState): readonly Host[] {
  return Array.from(cell.hosts.values(), ({ upAtMs: _, ...host }) => host).sort((a, b) => compare(a.name, b.name));
}

/** For each host, the servers whose home it is, sorted by UUID. */
export function residentsOf(cell: CellState, hosts: readonly string[]): readonly (readonly Home[])[] {
  const byHost = Map.groupBy(cell.servers.values(), (server) => server.host);
  return hosts.map((host) =>
    (byHost.get(host) ?? [])
      .sort((a, b) => compare(a.uuid, b.uuid))
      .map((server) => homeOf(cell, server))
      .filter((home) => home !== null),
  );
}
