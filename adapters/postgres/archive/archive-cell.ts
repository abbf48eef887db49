import type { ClientBase } from "pg";
import type { ArchiveCounts } from "./archive-counts.ts";
import { type ArchivedRow, type ArchiveOptions, archivePass, removeTogether } from "./archive-pass.ts";

/**
 * Moves rows of servers that are gone out of a cell's database: servers that became DELETED or CLOSED before the given time, with their
 * attempts, migrations, group memberships and closed operations, and then ended tasks whose servers are gone.
 *
 * A CLOSED or DELETED row protects against a late dispatch, which fails on its primary key. So the row is removed only when no dispatch can
 * come any more: when the API database (`apiClient`) has no request for the server or a deleted one, and no waiting move of it. A server
 * with a home, with allocations or with an open task stays, whatever its status says. So does a server whose volume has not been given back: only its rows tell
 * whether a host may still have the volume, and what Cinder is to be told of a replacement that the deletion has broken off.
 */
export async function archiveCell(
  client: ClientBase,
  apiClient: ClientBase,
  options: ArchiveOptions,
  counts: ArchiveCounts,
): Promise<void> {
  const before = new Date(options.beforeMs);
  await archivePass(
    client,
    {
      choose: `select s.uuid::text as key, s.status in ('DELETED', 'CLOSED') and coalesce(s.deleted_at, s.updated_at) < $3 as old
        from servers s where s.uuid > $1 order by s.uuid limit $2`,
      remove: async (keys) => {
        const over = await overAbove(apiClient, keys);
        if (over.length > 0) await removeServers(client, over, before, options, counts);
      },
    },
    options,
  );
  await archivePass(
    client,
    {
      choose: `select t.id::text as key, t.outcome is not null and t.ended_at < $3
          and not exists (select from servers s where s.uuid = t.server_uuid)
          and not exists (select from migrations m where m.uuid = t.id) as old
        from tasks t where t.id > $1 order by t.id limit $2`,
      remove: (keys) =>
        removeTogether(
          client,
          [
            () => ({
              table: "tasks",
              text: `with gone as (
                  delete from tasks t where t.id = any ($1) and t.outcome is not null and t.ended_at < $2
                    and not exists (select from servers s where s.uuid = t.server_uuid) returning t.*
                ) select to_jsonb(gone) as row from gone`,
              values: [keys, before],
            }),
          ],
          options,
          counts,
        ),
    },
    options,
  );
}

/** Servers whose requests have ended for good in the API database, so that nothing of them can still come to the cell, and whose volumes were given back. */
async function overAbove(apiClient: ClientBase, uuids: readonly string[]): Promise<readonly string[]> {
  const { rows } = await apiClient.query<{ uuid: string }>(
    `select w.uuid::text as uuid from unnest($1::uuid[]) as w (uuid)
     where not exists (select from requests r where r.server_uuid = w.uuid and r.state <> 'deleted')
       and not exists (select from moves m where m.server_uuid = w.uuid and m.state = 'accepted')
       and not exists (select from volumes v where v.server_uuid = w.uuid)`,
    [uuids],
  );
  return rows.map(({ uuid }) => uuid);
}

/**
 * The usual lock order: servers, then the rows that depend on them. A server that another process has locked is left for the next run.
 */
async function removeServers(
  client: ClientBase,
  uuids: readonly string[],
  before: Date,
  options: ArchiveOptions,
  counts: ArchiveCounts,
): Promise<void> {
  const removed = (taken: ReadonlyMap<string, readonly ArchivedRow[]>) =>
    (taken.get("servers") ?? []).map((row) => row.uuid);
  const ofThem = (table: string) => (taken: ReadonlyMap<string, readonly ArchivedRow[]>) => ({
    table,
    text: `with gone as (delete from ${table} g where g.server_uuid = any ($1) returning g.*)
      select to_jsonb(gone) as row from gone`,
    values: [removed(taken)],
  });
  const servers = () => ({
    table: "servers",
    text: `with free as (
        select s.uuid from servers s where s.uuid = any ($1) order by s.uuid for update skip locked
      ), gone as (
        delete from servers s using free
        where s.uuid = free.uuid and s.status in ('DELETED', 'CLOSED') and coalesce(s.deleted_at, s.updated_at) < $2
          and not exists (select from consumers c where c.uuid = s.uuid)
          and not exists (select from tasks t where t.server_uuid = s.uuid and t.outcome is null)
          and not exists (
            select from migrations m where m.server_uuid = s.uuid and (not m.ended or m.holds_source
              or exists (select from consumers c where c.uuid = m.uuid))
          )
        returning s.*
      ) select to_jsonb(gone) as row from gone`,
    values: [uuids, before],
  });
  await removeTogether(
    client,
    [servers, ofThem("attempts"), ofThem("migrations"), ofThem("group_members"), ofThem("closed_tasks")],
    options,
    counts,
  );
}
