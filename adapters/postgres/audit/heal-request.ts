import type { HealOutcome } from "../../../core/audit/healing.ts";
import { withClient } from "../databases.ts";
import { inHealing } from "./in-healing.ts";

/**
 * Hands a request that is dispatched to a cell which does not have its server back to the schedulers' sweep. It keeps the cell: a
 * scheduler takes it elsewhere only after that cell has closed its door, so a dispatch that comes late does no harm. Left alone:
 * requests that the sweep takes anyway.
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
    if (await hasServer(cellUrl, serverUuid)) return { kind: "in-order" };
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

function hasServer(cellUrl: string, uuid: string): Promise<boolean> {
  return withClient(cellUrl, async (client) => {
    const { rows } = await client.query("select from servers where uuid = $1 and status <> 'CLOSED'", [uuid]);
    return rows.length > 0;
  });
}
