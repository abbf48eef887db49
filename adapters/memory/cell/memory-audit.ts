import type { AuditedServer, CellReading } from "../../../core/audit/facts.ts";
import { providerUuid } from "../../../core/ledger/ids.ts";
import { isHardGroup } from "../../../core/tasks/group-rule.ts";
import type { CellState } from "./cell-state.ts";

/** The facts about a cell's tables that an audit checks, as they are at this moment. */
export function tableFacts(
  cell: CellState,
  nowMs: number,
): Pick<CellReading, "servers" | "closed" | "openTasks" | "moves" | "hosts" | "upMs"> {
  const servers: AuditedServer[] = [];
  const closed = new Set<string>();
  for (const { uuid, status, taskState, host, attemptId, updatedAtMs, spec } of cell.servers.values()) {
    if (status === "CLOSED") closed.add(uuid);
    else {
      const group = isHardGroup(spec.group) ? spec.group : null;
      servers.push({ uuid, status, taskState, host, attemptId, unchangedMs: nowMs - updatedAtMs, group });
    }
  }
  const openTasks = Array.from(cell.running, ({ id, serverUuid, kind, owner, createdAtMs, task, stage }) => {
    const leaseEndMs = owner === null ? createdAtMs : (cell.leases.get(owner) ?? createdAtMs);
    const operation = task.work?.$case === "operate" ? task.work.value.kind : null;
    return { id, serverUuid, kind, operation, stage, unattendedMs: Math.max(0, nowMs - leaseEndMs) };
  });
  const hosts = new Map(Array.from(cell.hosts.values(), (host) => [host.name, providerUuid(host.rootProvider)]));
  const up = Array.from(cell.hosts.values()).filter((host) => host.up);
  const upMs = new Map(up.map((host) => [host.name, nowMs - host.upAtMs]));
  const moves = [...cell.migrations.values()]
    .filter((row) => !row.ended || row.holdsSource)
    .map(({ uuid, serverUuid, sourceHost, sourceAttemptId, destHost, destAttemptId, ended, note }) => ({
      ...{ uuid, serverUuid, sourceHost, sourceAttemptId, destHost, destAttemptId },
      ...{ inFlight: !ended, isWaitShown: note !== "" },
    }));
  return { servers, closed, openTasks, moves, hosts, upMs };
}
