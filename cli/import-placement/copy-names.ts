import type { ClientBase } from "pg";
import type { Source } from "./source.ts";

/** The ledger's ids of the source's names. Names that the ledger lacks are added. */
export interface NameIds {
  readonly classes: ReadonlyMap<number, number>;
  readonly traits: ReadonlyMap<number, number>;
  /** Types of consumers by id; none in databases from before API 1.38. */
  readonly consumerTypes: ReadonlyMap<number, string>;
}

/** Copies the names, and maps the source's ids to the ledger's. Repeatable. Cost: some thousand names, read at once. */
export async function copyNames(source: Source, ledger: ClientBase): Promise<NameIds> {
  return {
    classes: await copyTable(source, ledger, "resource_classes"),
    traits: await copyTable(source, ledger, "traits"),
    consumerTypes: await readConsumerTypes(source),
  };
}

async function copyTable(
  source: Source,
  ledger: ClientBase,
  table: "resource_classes" | "traits",
): Promise<ReadonlyMap<number, number>> {
  const rows = await source.query(`select id, name from ${table}`);
  const names = rows.map((row) => String(row.name));
  await ledger.query(`insert into ${table} (name) select unnest($1::text[]) on conflict (name) do nothing`, [names]);
  const { rows: known } = await ledger.query<{ id: number; name: string }>(
    `select id, name from ${table} where name = any ($1::text[])`,
    [names],
  );
  const idOf = new Map(known.map(({ id, name }) => [name, id]));
  return new Map(rows.map((row) => [Number(row.id), idOf.get(String(row.name))!]));
}

async function readConsumerTypes(source: Source): Promise<ReadonlyMap<number, string>> {
  const [{ there } = { there: 0 }] = await source.query(
    `select count(*) as there from information_schema.tables
     where table_name = 'consumer_types' and table_schema = ${source.schema}`,
  );
  if (Number(there) === 0) return new Map();
  const rows = await source.query("select id, name from consumer_types");
  return new Map(rows.map((row) => [Number(row.id), String(row.name)]));
}
