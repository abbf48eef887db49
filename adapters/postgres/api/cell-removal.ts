import { countRemains } from "../client/count-remains.ts";
import { withClient } from "../client/databases.ts";

const IN_API = `select case state when 'failed' then 'servers that were not built' when 'dispatched' then 'servers'
     when 'accepted' then 'requests under way' else 'deletes under way' end as kind, server_uuid::text as id
   from requests where cell = $1 and state <> 'deleted'
   union all select 'moves under way', server_uuid::text from moves where cell = $1 and state = 'accepted'
   union all select 'attached volumes', id::text from volumes where cell = $1`;

/** What the API database still has of a cell: a text for each kind, with examples. */
export function apiRemainsOf(apiUrl: string, cell: string): Promise<readonly string[]> {
  return withClient(apiUrl, (client) => countRemains(client, IN_API, [cell]));
}

/**
 * Removes the cell's record, with the names of its hosts. Resolves with false, and removes nothing, if there is no such record, if it is not disabled, or if the API database still has something of the cell. Deleted
 * servers of the cell stay until they are archived.
 */
export function removeCell(apiUrl: string, cell: string): Promise<boolean> {
  return withClient(apiUrl, async (client) => {
    const { rowCount } = await client.query(
      `with removed as (delete from cells where name = $1 and disabled and not exists (${IN_API}) returning name),
         hosts as (delete from host_map where cell in (select name from removed)),
         claims as (delete from cell_claims where cell in (select name from removed))
       select from removed`,
      [cell],
    );
    return rowCount === 1;
  });
}
