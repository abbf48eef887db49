import { operationKind } from "../tasks/operation-kinds.ts";
import { edgesOf } from "../tasks/operation-stages.ts";
import type { AuditedRequest, AuditedServer, CellReading, CloudFacts } from "./facts.ts";
import type { Violation } from "./violation.ts";

/** A request that is touched again and again must end, too. This time is longer than any backlog and any retry should last. */
const PENDING_MS_MAX = 15 * 60_000;

/**
 * Law 5: whatever has not ended has a process that works on it. `patienceMs` is how long a request or a task may go untouched before it is
 * reported. It is 0 when nothing should be in flight.
 */
export function checkEndings(facts: CloudFacts, patienceMs: number): Violation[] {
  const running = new Set(
    facts.cells.flatMap((cell) => [...cell.runningGuests.values()].flat().map((guest) => guest.serverUuid)),
  );
  const violations = facts.cells.flatMap((cell) => [
    ...checkServers(cell),
    ...checkRunning(cell, running, patienceMs),
    ...checkTasks(cell, patienceMs),
    ...checkWaits(cell, patienceMs),
  ]);
  if (facts.api !== null) {
    violations.push(...checkRequests(facts, facts.api.requests, patienceMs));
    violations.push(...checkUnasked(facts, facts.api.requests, patienceMs));
  }
  return violations;
}

/**
 * Checks that a request asks for each server that lives. None does when its cell was restored to a moment before its deletion, or the API database to one before its
 * creation. Users do not see such a server, and it holds its resources.
 */
function checkUnasked(facts: CloudFacts, requests: readonly AuditedRequest[], patienceMs: number): Violation[] {
  const asked = new Set(
    requests.flatMap(({ serverUuid, state }) => (state === "deleted" || state === "failed" ? [] : serverUuid)),
  );
  return facts.cells.flatMap(({ cell, servers }) =>
    servers.flatMap(({ uuid, status, taskState, unchangedMs }) => {
      // A server whose deletion is under way ends soon, and its task is checked.
      if (status === "DELETED" || taskState === "deleting" || asked.has(uuid) || unchangedMs <= patienceMs) return [];
      return {
        law: 5 as const,
        what: "a server lives in its cell, and no request asks for it",
        where: `cell ${cell}, server ${uuid}`,
        proof: `${status}, unchanged for ${Math.round(unchangedMs / 1000)} s; its request has failed, is deleted, or is missing`,
        subject: { kind: "unasked" as const, cell, serverUuid: uuid },
      };
    }),
  );
}

function checkServers(facts: CellReading): Violation[] {
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

/**
 * Checks that ACTIVE servers run. Servers with an open task or a recent change are skipped. So are servers on hosts that are down, could
 * not be asked, or have just come up, because their guests are then being started.
 */
function checkRunning(facts: CellReading, running: ReadonlySet<string>, patienceMs: number): Violation[] {
  // No host was asked.
  if (facts.runningGuests.size === 0) return [];
  const attended = new Set(facts.openTasks.map((task) => task.serverUuid));
  return facts.servers.flatMap(({ uuid, status, host, attemptId, unchangedMs }) => {
    if (status !== "ACTIVE" || host === null || attended.has(uuid) || running.has(uuid)) return [];
    const upMs = facts.upMs.get(host) ?? 0;
    if (!facts.runningGuests.has(host) || unchangedMs <= patienceMs || upMs <= patienceMs) return [];
    const where = `cell ${facts.cell}, server ${uuid}`;
    const proof = `at home on ${host} as attempt ${attemptId ?? "none"}, where it does not run; unchanged for ${Math.round(unchangedMs / 1000)} s`;
    return { law: 5 as const, what: "a server is ACTIVE and runs nowhere", where, proof };
  });
}

function checkTasks(facts: CellReading, patienceMs: number): Violation[] {
  return facts.openTasks
    .filter((task) => task.unattendedMs > patienceMs)
    .map((task) => ({
      law: 5,
      what: `no conductor works on ${task.kind === "operate" ? "an operation's" : `a ${task.kind}`} task`,
      where: `cell ${facts.cell}, server ${task.serverUuid}, task ${task.id}`,
      proof: `without a living owner for ${Math.round(task.unattendedMs / 1000)} s`,
    }));
}

/** Checks that operations show their waits. An operation may wait indefinitely for a host that is away, but only while it says so. */
function checkWaits(facts: CellReading, patienceMs: number): Violation[] {
  if (facts.openTasks.length === 0) return [];
  const servers = new Map(facts.servers.map((server) => [server.uuid, server]));
  const moves = new Map(facts.moves.filter((move) => move.inFlight).map((move) => [move.serverUuid, move]));
  return facts.openTasks.flatMap(({ id, serverUuid, operation, stage }) => {
    const [kind, move] = [operationKind(operation ?? ""), moves.get(serverUuid)];
    if (kind === null || move === undefined || stage === null || edgesOf(kind, stage)?.gone !== stage) return [];
    const unchangedMs = servers.get(serverUuid)?.unchangedMs ?? 0;
    if (move.isWaitShown || facts.upMs.has(move.destHost) || unchangedMs <= patienceMs) return [];
    return {
      law: 5 as const,
      what: "an operation waits for a host that is away and does not say so",
      where: `cell ${facts.cell}, server ${serverUuid}, task ${id}`,
      proof: `${kind} is ${stage} on ${move.destHost}, which is down, unchanged for ${Math.round(unchangedMs / 1000)} s`,
    };
  });
}

function checkRequests(facts: CloudFacts, requests: readonly AuditedRequest[], patienceMs: number): Violation[] {
  const servers = new Map(
    facts.cells.map(({ cell, servers }) => [cell, new Map(servers.map((server) => [server.uuid, server]))]),
  );
  return requests.flatMap((request) => {
    const ofCell = request.cell === null ? undefined : servers.get(request.cell);
    // The cell could not be read, so nothing is known about its servers.
    if (request.cell !== null && ofCell === undefined) return [];
    const server = ofCell?.get(request.serverUuid);
    const other = server === undefined ? otherCellOf(request, servers) : null;
    const wrong = (other && whyElsewhere(request, other, patienceMs)) ?? whyUnended(request, server, patienceMs);
    if (wrong === null) return [];
    const subject = { kind: "request" as const, serverUuid: request.serverUuid };
    return { law: 5 as const, where: `server ${request.serverUuid}`, ...wrong, subject };
  });
}

interface OtherCell {
  readonly cell: string;
  readonly server: AuditedServer;
}

/** The cell that has the server, although the request is not assigned to this cell. A cell where it lives comes before one that has deleted it. */
function otherCellOf(
  { serverUuid }: AuditedRequest,
  servers: ReadonlyMap<string, ReadonlyMap<string, AuditedServer>>,
): OtherCell | null {
  let deleted: OtherCell | null = null;
  for (const [cell, ofCell] of servers) {
    const server = ofCell.get(serverUuid);
    if (server === undefined) continue;
    if (server.status !== "DELETED") return { cell, server };
    deleted ??= { cell, server };
  }
  return deleted;
}

/**
 * Why the request does not lead to its server. This happens when the API database was restored to a moment at which the request was in another
 * cell, or in none. A scheduler that takes such a request places the server a second time.
 */
function whyElsewhere(
  { state, cell, untouchedMs }: AuditedRequest,
  other: OtherCell,
  patienceMs: number,
): Pick<Violation, "what" | "proof"> | null {
  if (state === "failed" || state === "deleted" || untouchedMs <= patienceMs) return null;
  const { status } = other.server;
  // Nothing is left to be done for a cancelled request.
  if (status === "DELETED" && state === "cancelled") return null;
  const assigned = cell === null ? "and assigned to no cell" : `in cell ${cell}, which does not have the server`;
  const elsewhere =
    status === "DELETED" ? `cell ${other.cell} has deleted it` : `it lives in cell ${other.cell} as ${status}`;
  return {
    what: "a request is not assigned to the cell that has its server",
    proof: `request ${state} ${assigned}; ${elsewhere}`,
  };
}

function whyUnended(
  request: AuditedRequest,
  server: AuditedServer | undefined,
  patienceMs: number,
): Pick<Violation, "what" | "proof"> | null {
  const { state, untouchedMs, pendingMs } = request;
  const unattended = untouchedMs > patienceMs ? whyUnattended(request, server) : null;
  if (unattended !== null) {
    const proof = `request ${state} for ${Math.round(untouchedMs / 1000)} s, ${unattended}`;
    return { what: "an accepted request has not ended, and no process works on it", proof };
  }
  if ((state !== "accepted" && state !== "cancelled") || pendingMs <= PENDING_MS_MAX) return null;
  const proof = `request ${state}, pending for ${Math.round(pendingMs / 1000)} s, last touched ${Math.round(untouchedMs / 1000)} s ago`;
  return { what: "a request is touched again and again but does not end", proof };
}

function whyUnattended(request: AuditedRequest, server: AuditedServer | undefined): string | null {
  switch (request.state) {
    case "accepted":
      return "no cell chosen";
    case "dispatched":
      return server === undefined ? `cell ${request.cell} does not have it` : null;
    case "cancelled":
      // The API's own record may lag behind a cell that has deleted the server or is deleting it. In the latter case the task is checked.
      if (server === undefined || server.status === "DELETED" || server.taskState === "deleting") return null;
      return `cell ${request.cell} still has it as ${server.status}`;
    case "failed":
    case "deleted":
      return null;
    default:
      return request.state satisfies never;
  }
}
