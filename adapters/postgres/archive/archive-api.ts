import type { ClientBase } from "pg";
import type { ArchiveCounts } from "./archive-counts.ts";
import { type ArchiveOptions, archivePass, removeTogether } from "./archive-pass.ts";

/**
 * Moves finished rows out of the API database: deleted requests, moves that were begun or refused, members of server groups whose requests
 * are gone, and former aggregates that no cell mirrors. `mirrored` resolves with the UUIDs that some cell still mirrors, or with null when
 * a cell could not be asked; then the aggregates stay. Schedulers purge decisions and reservations.
 *
 * A late message about a removed request changes nothing, because a scheduler first assigns the request's row to a cell, and that row does
 * not exist.
 */
export async function archiveApi(
  client: ClientBase,
  mirrored: ((aggregates: readonly string[]) => Promise<ReadonlySet<string>>) | null,
  options: ArchiveOptions,
  counts: ArchiveCounts,
): Promise<void> {
  const pass = (table: string, key: string, old: string) =>
    archivePass(
      client,
      {
        choose: `select g.${key}::text as key, ${old} as old from ${table} g where g.${key} > $1 order by g.${key} limit $2`,
        remove: (keys) => remove(table, key, old, keys),
      },
      options,
    );
  const remove = async (table: string, key: string, old: string, keys: readonly string[]): Promise<void> => {
    const text = `with free as (
        select g.${key} as key from ${table} g where g.${key} = any ($1) and ${old.replaceAll("$3", "$2")}
        order by g.${key} for update skip locked
      ), gone as (delete from ${table} g using free where g.${key} = free.key returning g.*)
      select to_jsonb(gone) as row from gone`;
    const values = [keys, new Date(options.beforeMs)];
    await removeTogether(client, [() => ({ table, text, values })], options, counts);
  };
  await pass("moves", "id", "(g.state <> 'accepted' and g.updated_at < $3)");
  await pass("requests", "server_uuid", "(g.state = 'deleted' and g.updated_at < $3)");
  // A member is written before its request, so the request of a young member may not exist yet.
  await pass(
    "server_group_members",
    "server_uuid",
    "(g.added_at < $3 and not exists (select from requests r where r.server_uuid = g.server_uuid))",
  );
  if (mirrored === null) return;
  const former = "(g.deleted_at < $3)";
  await archivePass(
    client,
    {
      choose: `select g.uuid::text as key, ${former} as old from former_aggregates g where g.uuid > $1 order by g.uuid limit $2`,
      remove: async (keys) => {
        const still = await mirrored(keys);
        const unmirrored = keys.filter((key) => !still.has(key));
        if (unmirrored.length > 0) await remove("former_aggregates", "uuid", former, unmirrored);
      },
    },
    options,
  );
}
