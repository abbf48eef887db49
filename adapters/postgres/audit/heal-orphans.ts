import type { ClientBase } from "pg";
import { withClient } from "../databases.ts";

/** A consumer of a cell's ledger that belongs to no server or move of it, and what it holds. */
export interface Orphan {
  readonly consumer: string;
  readonly why: string;
  /** "2 VCPU of <provider>", … */
  readonly holds: readonly string[];
}

/**
 * Gives back what belongs to no server that lives and to no move that is not settled; all at once. Claims in flight are safe: a claim and
 * its server's row commit together, and the servers' rows are locked before it is looked again. `isDryRun`: changes nothing.
 */
export function healOrphans(databaseUrl: string, isDryRun: boolean): Promise<readonly Orphan[]> {
  return withClient(databaseUrl, async (client) => {
    await client.query("begin");
    const suspects = await readOrphans(client);
    const uuids = suspects.map((orphan) => orphan.consumer);
    await client.query("select from servers where uuid = any ($1::uuid[]) order by uuid for no key update", [uuids]);
    const orphans = (await readOrphans(client)).filter((orphan) => uuids.includes(orphan.consumer));
    if (!isDryRun && orphans.length > 0)
      await client.query("select ledger_give_back($1::uuid[])", [orphans.map((orphan) => orphan.consumer)]);
    await client.query(isDryRun ? "rollback" : "commit");
    return orphans;
  });
}

async function readOrphans(client: ClientBase): Promise<readonly Orphan[]> {
  const { rows } = await client.query<Orphan>(`
    select o.uuid as consumer, o.why, array(
      select a.amount || ' ' || r.name || ' of ' || p.uuid
      from allocations a
      join resource_providers p on p.id = a.provider_id join resource_classes r on r.id = a.class_id
      where a.consumer_uuid = o.uuid order by p.uuid, r.name
    ) as holds
    from (
      select c.uuid, case c.type
        when 'INSTANCE' then case
          when s.uuid is null then 'there is no such server'
          when s.status in ('DELETED', 'CLOSED') then 'its server is ' || s.status
          when s.host is null then 'its server is ' || s.status || ' and has no host' end
        when 'MIGRATION' then case
          when m.uuid is null then 'there is no such move'
          when m.ended and not m.holds_source then 'its move is over' end
        end as why
      from consumers c left join servers s on s.uuid = c.uuid left join migrations m on m.uuid = c.uuid
    ) o
    where o.why is not null order by o.uuid`);
  return rows;
}
