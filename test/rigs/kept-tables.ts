import { withClient } from "../../adapters/postgres/client/databases.ts";

const TABLES = `select string_agg(relname, ',' order by relname) as names from pg_class
  where relkind = 'r' and relnamespace = 'public'::regnamespace and relname not like 'schema\\_%'`;

/** The rows of a database at one moment. The database can be reset to them, as by a restore. */
export interface KeptTables {
  restore(): Promise<void>;
}

/** Copies the content of all tables into another schema. Only one copy of each database exists at a time. */
export async function keepTables(url: string): Promise<KeptTables> {
  const names = await withClient(url, async (client) => {
    const { rows } = await client.query<{ names: string }>(TABLES);
    const found = (rows[0]?.names ?? "").split(",");
    await client.query("drop schema if exists kept cascade; create schema kept");
    await client.query(found.map((name) => `create table kept.${name} as table public.${name}`).join("; "));
    return found;
  });
  return {
    restore: () =>
      withClient(url, async (client) => {
        // Triggers and foreign keys have already checked these rows.
        await client.query("set session_replication_role = replica");
        await client.query(`begin; truncate ${names.map((name) => `public.${name}`).join(", ")};
          ${names.map((name) => `insert into public.${name} overriding system value table kept.${name}`).join("; ")}; commit`);
      }),
  };
}
