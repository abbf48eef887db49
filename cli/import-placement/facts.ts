import type { ClientBase } from "pg";
import type { Facts } from "./checkpoint.ts";
import type { Source, SourceRow } from "./source.ts";

type Query = (sql: string) => Promise<readonly SourceRow[]>;

/** The counts of the source's content. Only consumers that hold something are counted, since the ledger keeps no others. */
export async function factsOfSource(source: Source): Promise<Facts> {
  const { query } = source;
  return {
    ...(await totals(
      query,
      "providers",
      `
      select count(*) as row_count, sum(generation) as generations, sum(coalesce(parent_provider_id, 0)) as parents,
        sum(coalesce(root_provider_id, id)) as roots from resource_providers`,
    )),
    ...(await totals(query, "provider traits", `select count(*) as row_count from resource_provider_traits`)),
    ...(await totals(query, "provider aggregates", `select count(*) as row_count from resource_provider_aggregates`)),
    ...(await perClass(
      query,
      "inventories",
      `
      select c.name, count(*) as row_count, sum(i.total) as total, sum(i.reserved) as reserved,
        sum(i.min_unit) as min_units, sum(i.max_unit) as max_units, sum(i.step_size) as step_sizes
      from inventories i left join resource_classes c on c.id = i.resource_class_id group by c.name`,
    )),
    ...(await totals(
      query,
      "consumers",
      `
      select count(*) as row_count, sum(c.generation) as generations from consumers c
      where exists (select 1 from allocations a where a.consumer_id = c.uuid)`,
    )),
    ...(await perClass(
      query,
      "allocations",
      `
      select c.name, count(*) as row_count, sum(a.used) as amount from (
        select consumer_id, resource_provider_id, resource_class_id, sum(used) as used from allocations
        group by consumer_id, resource_provider_id, resource_class_id) a
      left join resource_classes c on c.id = a.resource_class_id group by c.name`,
    )),
  };
}

/** Facts of the ledger. `used` of inventories is taken as the sum of the allocations, which it must equal. */
export async function factsOfLedger(client: ClientBase): Promise<Facts> {
  const query: Query = async (sql) => (await client.query<SourceRow>(sql)).rows;
  return {
    ...(await totals(
      query,
      "providers",
      `
      select count(*) as row_count, sum(generation) as generations, sum(coalesce(parent_id, 0)) as parents, sum(root_id) as roots
      from resource_providers`,
    )),
    ...(await totals(query, "provider traits", `select count(*) as row_count from provider_traits`)),
    ...(await totals(query, "provider aggregates", `select count(*) as row_count from provider_aggregates`)),
    ...(await perClass(
      query,
      "inventories",
      `
      select c.name, count(*) as row_count, sum(i.total) as total, sum(i.reserved) as reserved,
        sum(i.min_unit) as min_units, sum(i.max_unit::bigint) as max_units, sum(i.step_size) as step_sizes
      from inventories i join resource_classes c on c.id = i.class_id group by c.name`,
    )),
    ...(await totals(
      query,
      "consumers",
      `select count(*) as row_count, sum(generation) as generations from consumers`,
    )),
    ...(await perClass(
      query,
      "allocations",
      `
      select c.name, count(*) as row_count, sum(a.amount) as amount
      from allocations a join resource_classes c on c.id = a.class_id group by c.name`,
    )),
  };
}

async function totals(query: Query, table: string, sql: string): Promise<Facts> {
  const [row] = await query(sql);
  return Object.fromEntries(
    Object.entries(row ?? {}).map(([name, value]) => [`${table}: ${name}`, Number(value ?? 0)]),
  );
}

async function perClass(query: Query, table: string, sql: string): Promise<Facts> {
  const rows = await query(sql);
  return Object.fromEntries(
    rows.flatMap(({ name: resourceClass, ...sums }) =>
      Object.entries(sums).map(([name, value]) => [
        `${table} of ${resourceClass ?? "unknown classes"}: ${name}`,
        Number(value ?? 0),
      ]),
    ),
  );
}

/** Number of rows in all tables, which the progress counts up to. */
export function rowsIn(facts: Facts): number {
  return Object.entries(facts).reduce((sum, [name, value]) => sum + (name.endsWith(": row_count") ? value : 0), 0);
}

export interface Difference {
  readonly fact: string;
  readonly source: number;
  readonly ledger: number;
}

/** Returns the facts that differ. */
export function compareFacts(source: Facts, ledger: Facts): readonly Difference[] {
  const names = [...new Set([...Object.keys(source), ...Object.keys(ledger)])];
  return names
    .map((fact) => ({ fact, source: source[fact] ?? 0, ledger: ledger[fact] ?? 0 }))
    .filter((one) => one.source !== one.ledger);
}
