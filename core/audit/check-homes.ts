import type { CloudFacts, RunningGuest } from "./facts.ts";
import type { Violation } from "./violation.ts";

interface Running extends RunningGuest {
  readonly cell: string;
  readonly host: string;
}

/** Law 4: a server lives in one cell, and runs only on the host and as the attempt that its cell names. */
export function checkHomes(facts: CloudFacts): Violation[] {
  return [...checkCells(facts), ...checkGuests(facts)];
}

function checkCells(facts: CloudFacts): Violation[] {
  const cellsOf = new Map<string, string[]>();
  for (const cell of facts.cells) {
    for (const server of cell.servers) {
      if (server.status === "DELETED") continue;
      const cells = cellsOf.get(server.uuid);
      if (cells === undefined) cellsOf.set(server.uuid, [cell.cell]);
      else cells.push(cell.cell);
    }
  }
  const violations: Violation[] = [];
  for (const [uuid, cells] of cellsOf) {
    if (cells.length < 2) continue;
    violations.push({
      law: 4,
      what: "a server lives in two cells",
      where: `server ${uuid}`,
      proof: `cells ${cells.join(", ")}`,
    });
  }
  return violations;
}

function checkGuests(facts: CloudFacts): Violation[] {
  const violations: Violation[] = [];
  const runningOf = new Map<string, Running[]>();
  for (const cell of facts.cells) {
    if (cell.runningGuests.size === 0) continue;
    const servers = new Map(cell.servers.map((server) => [server.uuid, server]));
    for (const [host, guests] of cell.runningGuests) {
      for (const guest of guests) {
        const running = { ...guest, cell: cell.cell, host };
        const others = runningOf.get(guest.serverUuid);
        if (others === undefined) runningOf.set(guest.serverUuid, [running]);
        else others.push(running);
        const server = servers.get(guest.serverUuid);
        if (server?.host === host && server.attemptId === guest.attemptId && server.status !== "DELETED") continue;
        const home =
          server === undefined
            ? "the cell knows no such server"
            : `the cell says ${server.status}, home ${server.host ?? "none"}, attempt ${server.attemptId ?? "none"}`;
        violations.push({
          law: 4,
          what: "a guest runs outside its server's home",
          where: `cell ${cell.cell}, host ${host}, server ${guest.serverUuid}`,
          proof: `it runs as attempt ${guest.attemptId}; ${home}`,
          subject: { kind: "guest", cell: cell.cell, host, serverUuid: guest.serverUuid },
        });
      }
    }
  }
  for (const [uuid, running] of runningOf) {
    if (running.length < 2) continue;
    const proof = running.map((guest) => `${guest.host} in cell ${guest.cell} (attempt ${guest.attemptId})`).join(", ");
    violations.push({ law: 4, what: "a server runs twice", where: `server ${uuid}`, proof });
  }
  return violations;
}
