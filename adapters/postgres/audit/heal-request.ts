import type { HealOutcome } from "../../../core/audit/healing.ts";
import { withClient } from "../client/databases.ts";
import { inHealing } from "./in-healing.ts";

interface CellDatabase {
  readonly name: string;
  readonly databaseUrl: string;
}

/**
 * Hands a request that is dispatched to a cell without its server back to the schedulers' sweep. The request keeps the cell: a scheduler
 * assigns it elsewhere only after that cell has closed the server's UUID, so a late dispatch does no harm. Left alone are requests that the
 * sweep takes anyway, those of servers with a quarantined guest, which a restored database has forgotten, and those of servers that another cell
 * has, which a restored API database has forgotten. So every cell is asked; throws when one of them cannot be read.
 */
export function healRequest(
  databases: { readonly apiUrl: string; readonly cells: readonly CellDatabase[] },
  serverUuid: string,
  isDryRun: boolean,
): Promise<HealOutcome> {
  return inHealing(databases.apiUrl, isDryRun, async (client) => {
    const { rows } = await client.query<{ state: string; cell: string | null }>(
      "select state, cell from requests where server_uuid = $1 for no key update",
      [serverUuid],
    );
    const [request] = rows;
    if (request === undefined || request.state === "failed" || request.state === "deleted") return { kind: "in-order" };
    if (request.state !== "dispatched" || request.cell === null)
      return { kind: "left", why: `it is ${request.state}: a scheduler's sweep takes it, if one runs` };
    const assigned = request.cell;
    if (!databases.cells.some(({ name }) => name === assigned))
      return { kind: "left", why: `there is no cell ${assigned}` };
    for (const cell of databases.cells) {
      const known = await knownIn(cell, serverUuid);
      if (known === "server" && cell.name === assigned) return { kind: "in-order" };
      if (known !== null) return { kind: "left", why: whyLeft(known, cell.name) };
    }
    await client.query("update requests set state = 'accepted', updated_at = now() where server_uuid = $1", [
      serverUuid,
    ]);
    return {
      kind: "healed",
      before: `dispatched to cell ${request.cell}, which does not have it`,
      after: "accepted: a scheduler's sweep takes it",
    };
  });
}

type Known = "server" | "quarantined guest";

function whyLeft(known: Known, cell: string): string {
  return known === "server"
    ? `cell ${cell} has its server. If it were placed again, it would run twice`
    : `a guest of it is in quarantine and may run. If it were built again, it would run twice: see berth cell quarantine ${cell}`;
}

function knownIn({ databaseUrl }: CellDatabase, uuid: string): Promise<Known | null> {
  return withClient(databaseUrl, async (client) => {
    const servers = await client.query("select from servers where uuid = $1 and status <> 'CLOSED'", [uuid]);
    if (servers.rows.length > 0) return "server";
    const guests = await client.query("select from quarantined_guests where server_uuid = $1 and holds", [uuid]);
    return guests.rows.length > 0 ? "quarantined guest" : null;
  });
}
