import { countRemains } from "../client/count-remains.ts";
import { withClient } from "../client/databases.ts";

const IN_CELL = `select 'conductors that run' as kind, name as id from conductors where lease_expires_at > now()
   union all select 'hosts', name from hosts
   union all select 'servers', uuid::text from servers where status not in ('DELETED', 'CLOSED')
   union all select 'operations under way', id::text from tasks where ended_at is null
   union all select 'consumers with allocations', uuid::text from consumers
   union all select 'resource providers', coalesce(name, uuid::text) from resource_providers`;

/**
 * What a cell still has: conductors with a lease, hosts, servers, open tasks, and whatever clients of Placement keep there. One text for each kind, with examples. A cell without any of these carries nothing
 * out, and schedulers cannot place anything in it. Rejects if this is another cell's database.
 */
export function cellRemainsIn(cellUrl: string, cell: string): Promise<readonly string[]> {
  return withClient(cellUrl, async (client) => {
    const named = await client.query<{ cell_name: string | null }>("select cell_name from incarnation");
    const owner = named.rows[0]?.cell_name ?? cell;
    if (owner !== cell) throw new Error(`its URL names the database of cell ${owner}`);
    return countRemains(client, IN_CELL);
  });
}
