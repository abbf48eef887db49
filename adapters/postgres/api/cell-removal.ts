import { countingRemains, describeRemains, type RemainsRow } from "../client/count-remains.ts";
import { withClient } from "../client/databases.ts";

/** What the API database still has of a cell: a text for each kind, with examples, such as `servers: 3 (a, b, c)`. */
export interface CellRemains {
  readonly isKnown: boolean;
  readonly isDisabled: boolean;
  readonly remains: readonly string[];
}

const IN_API = countingRemains(
  `select case state when 'failed' then 'servers that were not built' when 'dispatched' then 'servers'
     when 'accepted' then 'requests under way' else 'deletes under way' end as kind, server_uuid::text as id
   from requests where cell = $1 and state <> 'deleted'
   union all select 'moves under way', server_uuid::text from moves where cell = $1 and state = 'accepted'
   union all select 'attached volumes', id::text from volumes where cell = $1`,
);

/** What remains of the cell in the API database. */
export function apiRemainsOf(apiUrl: string, cell: string): Promise<CellRemains> {
  return withClient(apiUrl, async (client) => {
    const { rows: records } = await client.query<{ disabled: boolean }>("select disabled from cells where name = $1", [
      cell,
    ]);
    const { rows } = await client.query<RemainsRow>(IN_API, [cell]);
    return {
      isKnown: records.length > 0,
      isDisabled: records[0]?.disabled === true,
      remains: rows.map(describeRemains),
    };
  });
}

/**
 * Removes the cell's record, with the names of its hosts. Resolves with false, and removes nothing, if it is no longer disabled, or has something in the API database by now. Deleted servers of the cell stay until
 * they are archived.
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
