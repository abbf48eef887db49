import { shouldExist } from "../tasks/guest-fate.ts";
import type { AuditedMove, AuditedServer, AuditedTask, CellReading } from "./facts.ts";
import type { Violation } from "./violation.ts";

/** A host, and the attempt whose guest is there. */
type Place = readonly [host: string, attemptId: string];
type CopyFacts = Pick<CellReading, "cell" | "servers" | "openTasks" | "moves" | "copies">;

/**
 * Law 6: every server with a home has a guest there, or where a move in flight keeps one. The guests of a host are read from its agent or
 * the agent's journal. While one of these hosts could not be asked, nothing is reported about the server. A server that is being deleted or
 * offloaded loses its guest on purpose.
 */
export function checkCopies(facts: CopyFacts): Violation[] {
  // No host was asked.
  if (facts.copies.size === 0) return [];
  const tasks = new Map(facts.openTasks.map((task) => [task.serverUuid, task]));
  const moves = new Map(facts.moves.filter(({ inFlight }) => inFlight).map((move) => [move.serverUuid, move]));
  return facts.servers.flatMap((server) => {
    const places = placesOf(server, moves.get(server.uuid));
    if (!shouldExist(server.status) || losesItsGuest(tasks.get(server.uuid)) || places.length === 0) return [];
    if (places.some(([host]) => !facts.copies.has(host)) || places.some((place) => hasGuest(facts, server, place)))
      return [];
    return {
      law: 6,
      what: "no copy of a server exists",
      where: `cell ${facts.cell}, server ${server.uuid}`,
      proof: `${server.status}; these hosts were asked and do not have its guest: ${places.map(([host, attempt]) => `${host} (attempt ${attempt})`).join(", ")}`,
    };
  });
}

/** The server's home, and both ends of its move in flight. */
function placesOf({ host, attemptId }: AuditedServer, move: AuditedMove | undefined): Place[] {
  if (host === null) return [];
  const ends = [
    [host, attemptId],
    [move?.sourceHost, move?.sourceAttemptId],
    [move?.destHost, move?.destAttemptId],
  ] as const;
  return ends.flatMap(([at, attempt]): Place[] => (at && attempt ? [[at, attempt]] : []));
}

function hasGuest({ copies }: CopyFacts, { uuid }: AuditedServer, [host, attempt]: Place): boolean {
  return copies.get(host)?.some((guest) => guest.serverUuid === uuid && guest.attemptId === attempt) === true;
}

function losesItsGuest(task: AuditedTask | undefined): boolean {
  if (task?.kind === "delete") return true;
  return task?.stage === "offloading";
}
