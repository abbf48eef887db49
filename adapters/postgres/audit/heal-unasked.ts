import type { HealOutcome } from "../../../core/audit/healing.ts";
import { withClient } from "../client/databases.ts";
import { inHealing } from "./in-healing.ts";

/**
 * Has a server deleted that lives although its request is deleted, because its cell was restored to an earlier moment: the request becomes cancelled again, and a scheduler's
 * sweep tells the cell, as after the user's own DELETE. A server without a request is left alone, since nobody has asked for its deletion. Throws when the cell cannot be read.
 */
export function healUnasked(
  urls: { readonly api: string; readonly cell: string },
  { cell, serverUuid }: { readonly cell: string; readonly serverUuid: string },
  isDryRun: boolean,
): Promise<HealOutcome> {
  return inHealing(urls.api, isDryRun, async (client) => {
    const { rows } = await client.query<{ state: string; cell: string | null }>(
      "select state, cell from requests where server_uuid = $1 for no key update",
      [serverUuid],
    );
    const [request] = rows;
    if (request === undefined)
      return {
        kind: "left",
        why: "the API database does not know it: a restore has forgotten its request, or an archive has removed it. Only a person can decide whether it is still wanted",
      };
    if (request.state === "failed")
      return { kind: "left", why: "its request has failed, and is shown as ERROR: delete the server, and heal again" };
    if (request.state !== "deleted" || !(await lives(urls.cell, serverUuid))) return { kind: "in-order" };
    if (request.cell !== cell)
      return {
        kind: "left",
        why: `its request was deleted in ${request.cell === null ? "no cell" : `cell ${request.cell}`}, so a sweep would not ask this one`,
      };
    await client.query(
      "update requests set state = 'cancelled', cancelled_at = now(), updated_at = now() where server_uuid = $1",
      [serverUuid],
    );
    return {
      kind: "healed",
      before: "deleted",
      after: "cancelled: a scheduler's sweep has the cell delete the server",
    };
  });
}

function lives(cellUrl: string, uuid: string): Promise<boolean> {
  return withClient(cellUrl, async (client) => {
    const { rows } = await client.query("select from servers where uuid = $1 and status not in ('CLOSED', 'DELETED')", [
      uuid,
    ]);
    return rows.length > 0;
  });
}
