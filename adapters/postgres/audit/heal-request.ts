import type { HealOutcome } from "../../../core/audit/healing.ts";
import { withClient } from "../client/databases.ts";
import { inHealing } from "./in-healing.ts";

/**
 * Hands a request that is dispatched to a cell without its server back to the schedulers' sweep. The request keeps the cell: a scheduler
 * assigns it elsewhere only after that cell has closed the server's UUID, so a late dispatch does no harm. Left alone are requests that the
 * sweep takes anyway, and those of servers with a quarantined guest, which a restored database has forgotten.
 */
export function healRequest(
  databases: { readonly apiUrl: string; readonly cellUrl: (cell: string) => string | null },
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
    const cellUrl = databases.cellUrl(request.cell);
    if (cellUrl === null) return { kind: "left", why: `there is no cell ${request.cell}` };
    const known = await knownIn(cellUrl, serverUuid);
    if (known === "server") return { kind: "in-order" };
    if (known === "quarantined guest")
      return {
        kind: "left",
        why: `a guest of it is in quarantine and may run. If it were built again, it would run twice: see berth cell quarantine ${request.cell}`,
      };
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

function knownIn(cellUrl: string, uuid: string): Promise<"server" | "quarantined guest" | null> {
  return withClient(cellUrl, async (client) => {
    const servers = await client.query("select from servers where uuid = $1 and status <> 'CLOSED'", [uuid]);
    if (servers.rows.length > 0) return "server";
    const guests = await client.query("select from quarantined_guests where server_uuid = $1", [uuid]);
    return guests.rows.length > 0 ? "quarantined guest" : null;
  });
}
