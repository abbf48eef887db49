import type { AuditedRequest, AuditedServer, CellFacts, CloudFacts } from "./facts.ts";
import type { Violation } from "./violation.ts";

/**
 * Law 5: whatever is not ended has somebody who works on it. `patienceMs`: how long a request or a task may lie about
 * before that counts as nobody; 0 when nothing should be in flight any more.
 */
export function checkEndings(facts: CloudFacts, patienceMs: number): Violation[] {
  const violations = facts.cells.flatMap((cell) => [...checkServers(cell), ...checkTasks(cell, patienceMs)]);
  if (facts.api !== null) violations.push(...checkRequests(facts, facts.api.requests, patienceMs));
  return violations;
}

function checkServers(facts: CellFacts): Violation[] {
  const attended = new Set(facts.openTasks.map((task) => task.serverUuid));
  const violations: Violation[] = [];
  for (const server of facts.servers) {
    const unfinished = server.status === "BUILD" || (server.taskState !== null && server.status !== "DELETED");
    if (!unfinished || attended.has(server.uuid)) continue;
    violations.push({
      law: 5,
      what: "a server waits for a task that does not exist",
      where: `cell ${facts.cell}, server ${server.uuid}`,
      proof: `${server.status}, task state ${server.taskState ?? "none"}, no open task`,
    });
  }
  return violations;
}

function checkTasks(facts: CellFacts, patienceMs: number): Violation[] {
  return facts.openTasks
    .filter((task) => task.unattendedMs > patienceMs)
    .map((task) => ({
      law: 5,
      what: `nobody works on a ${task.kind} task`,
      where: `cell ${facts.cell}, server ${task.serverUuid}, task ${task.id}`,
      proof: `without a living owner for ${Math.round(task.unattendedMs / 1000)} s`,
    }));
}

function checkRequests(facts: CloudFacts, requests: readonly AuditedRequest[], patienceMs: number): Violation[] {
  const cells = new Map(
    facts.cells.map((cell) => [
      cell.cell,
      { cell, servers: new Map(cell.servers.map((server) => [server.uuid, server])) },
    ]),
  );
  const violations: Violation[] = [];
  for (const request of requests) {
    const cell = request.cell === null ? undefined : cells.get(request.cell);
    // The cell could not be read: nothing is known of what it has.
    if (request.cell !== null && cell === undefined) continue;
    const server = cell?.servers.get(request.serverUuid);
    const wrong = whyUnended(request, server, patienceMs);
    if (wrong === null) continue;
    violations.push({
      law: 5,
      what: "an accepted request has not ended and nobody works on it",
      where: `server ${request.serverUuid}`,
      proof: `request ${request.state} for ${Math.round(request.untouchedMs / 1000)} s, ${wrong}`,
    });
  }
  return violations;
}

function whyUnended(request: AuditedRequest, server: AuditedServer | undefined, patienceMs: number): string | null {
  if (request.untouchedMs <= patienceMs) return null;
  switch (request.state) {
    case "accepted":
      return "no cell chosen";
    case "dispatched":
      return server === undefined ? `cell ${request.cell} does not have it` : null;
    case "cancelled":
      // The API's own record may lag behind a cell that has deleted it, or is at it (then the task is checked).
      if (server === undefined || server.status === "DELETED" || server.taskState === "deleting") return null;
      return `cell ${request.cell} still has it as ${server.status}`;
    case "failed":
    case "deleted":
      return null;
    default:
      return request.state satisfies never;
  }
}
