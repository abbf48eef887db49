import type { AuditedServer, CellFacts } from "../../core/audit/facts.ts";
import { providerUuid } from "../../core/ledger/ids.ts";
import type { CellState } from "./memory-cell-state.ts";

/** What an audit asks of a cell's tables, as they are at this moment. */
export function tableFacts(
  cell: CellState,
  nowMs: number,
): Pick<CellFacts, "servers" | "closed" | "openTasks" | "moves" | "hosts" | "upMs"> {
  const servers: AuditedServer[] = [];
  const closed = new Set<string>();
  for (const { uuid, status, taskState, host, attemptId, updatedAtMs } of cell.servers.values()) {
    if (status === "CLOSED") closed.add(uuid);
    else servers.push({ uuid, status, taskState, host, attemptId, unchangedMs: nowMs - updatedAtMs });
  }
  const openTasks = Array.from(cell.running, ({ id, serverUuid, kind, owner, createdAtMs }) => {
    const leaseEndMs = owner === null ? createdAtMs : (cell.leases.get(owner) ?? createdAtMs);
    return { id, serverUuid, kind, unattendedMs: Math.max(0, nowMs - leaseEndMs) };
  });
  const hosts = new Map(Array.from(cell.hosts.values(), (host) => [host.name, providerUuid(host.rootProvider)]));
  const up = Array.from(cell.hosts.values()).filter((host) => host.up);
  const upMs = new Map(up.map((host) => [host.name, nowMs - host.upAtMs]));
  const moves = [...cell.migrations.values()]
    .filter((row) => !row.ended || row.holdsSource)
    .map(({ uuid, serverUuid, sourceHost, destHost, ended }) => ({
      uuid,
      serverUuid,
      sourceHost,
      destHost,
      inFlight: !ended,
    }));
  return { servers, closed, openTasks, moves, hosts, upMs };
}
