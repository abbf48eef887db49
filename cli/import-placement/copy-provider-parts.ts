import { type CopiedBatch, type CopyContext, type CopyStep, ledgerUuid } from "./copy-step.ts";
import type { SourceRow } from "./source.ts";

// The parts of providers are copied in batches of providers, because two of the three tables have no id to order by.

function partsOf(what: string, table: string, columns: (context: CopyContext) => string, put: PutParts): CopyStep {
  return {
    what,
    async copy(context, afterId, rowsMax): Promise<CopiedBatch> {
      const { source } = context;
      const range = await source.query(
        `select max(id) as last_id from (
           select distinct resource_provider_id as id from ${table} where resource_provider_id > ${afterId}
           order by resource_provider_id limit ${providersOf(rowsMax)}) batch`,
      );
      const lastId = range[0]?.last_id ?? null;
      if (lastId === null) return { lastId: null, rows: 0 };
      const rows = await source.query(
        `select ${columns(context)} from ${table} t
         ${table === "resource_provider_aggregates" ? "left join placement_aggregates g on g.id = t.aggregate_id" : ""}
         where t.resource_provider_id > ${afterId} and t.resource_provider_id <= ${Number(lastId)}`,
      );
      await put(context, rows);
      return { lastId: Number(lastId), rows: rows.length };
    },
  };
}

type PutParts = (context: CopyContext, rows: readonly SourceRow[]) => Promise<void>;

/** A provider has a few inventories, and may have some hundred traits. */
const providersOf = (rowsMax: number): number => Math.max(1, Math.ceil(rowsMax / 10));

/** Columns of a row as parameters of a statement. */
const column = (rows: readonly SourceRow[], name: string): readonly unknown[] => rows.map((row) => row[name]);

const timeOf = ({ source }: CopyContext): string =>
  `${source.epoch("coalesce(t.updated_at, t.created_at)")} as updated`;

/** Reports the rows that the ledger did not take. */
function reportUntaken(
  { rejected }: CopyContext,
  rows: readonly SourceRow[],
  taken: readonly { readonly provider_id: number; readonly part: string | number }[],
  what: string,
): void {
  const keys = new Set(taken.map((one) => `${one.provider_id} ${one.part}`));
  for (const row of rows) {
    if (!keys.has(`${row.provider_id} ${row.part}`)) rejected.add(what, `provider ${row.provider_id}, ${row.label}`);
  }
}

/** The rows with the ledger's id of the class or trait as `part`; those whose name is not there are reported. */
function named(
  context: CopyContext,
  rows: readonly SourceRow[],
  ids: ReadonlyMap<number, number>,
  what: string,
): SourceRow[] {
  return rows.flatMap((row) => {
    const part = ids.get(Number(row.name_id));
    if (part !== undefined) return [{ ...row, part, label: `id ${row.name_id}` }];
    context.rejected.add(what, `provider ${row.provider_id}, id ${row.name_id}`);
    return [];
  });
}

export const copyTraits = partsOf(
  "traits of providers",
  "resource_provider_traits",
  () => "t.resource_provider_id as provider_id, t.trait_id as name_id",
  async (context, rows) => {
    const fitting = named(context, rows, context.names.traits, "traits of providers that have no name");
    const { rows: taken } = await context.ledger.query(
      `insert into provider_traits (provider_id, trait_id)
       select v.provider_id, v.part from unnest($1::int[], $2::int[]) as v (provider_id, part)
       where exists (select from resource_providers p where p.id = v.provider_id)
       on conflict (provider_id, trait_id) do update set trait_id = excluded.trait_id returning provider_id, trait_id as part`,
      [column(fitting, "provider_id"), column(fitting, "part")],
    );
    reportUntaken(context, fitting, taken, "traits of providers that do not exist");
  },
);

export const copyAggregates = partsOf(
  "aggregates of providers",
  "resource_provider_aggregates",
  () => "t.resource_provider_id as provider_id, t.aggregate_id, g.uuid",
  async (context, rows) => {
    const fitting = rows.flatMap((row): SourceRow[] => {
      const part = ledgerUuid(String(row.uuid));
      if (part !== null) return [{ ...row, part, label: part }];
      context.rejected.add("aggregates that have no UUID", `provider ${row.provider_id}, id ${row.aggregate_id}`);
      return [];
    });
    const { rows: taken } = await context.ledger.query(
      `insert into provider_aggregates (provider_id, aggregate)
       select v.provider_id, v.part from unnest($1::int[], $2::uuid[]) as v (provider_id, part)
       where exists (select from resource_providers p where p.id = v.provider_id)
       on conflict (provider_id, aggregate) do update set aggregate = excluded.aggregate returning provider_id, aggregate as part`,
      [column(fitting, "provider_id"), column(fitting, "part")],
    );
    reportUntaken(context, fitting, taken, "aggregates of providers that do not exist");
  },
);

export const copyInventories = partsOf(
  "inventories",
  "inventories",
  (context) =>
    `t.resource_provider_id as provider_id, t.resource_class_id as name_id, t.total, t.reserved, t.min_unit, t.max_unit,
     t.step_size, t.allocation_ratio, ${timeOf(context)}`,
  async (context, rows) => {
    const known = named(context, rows, context.names.classes, "inventories of unknown classes");
    const fitting = known.filter((row) => Number(row.min_unit) > 0 && Number(row.step_size) > 0);
    for (const row of known) {
      if (!fitting.includes(row))
        context.rejected.add("inventories whose units are not positive", `provider ${row.provider_id}, ${row.label}`);
    }
    const { rows: taken } = await context.ledger.query(
      `insert into inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, updated_at)
       select v.provider_id, v.part, v.total, v.reserved, v.min_unit, v.max_unit, v.step_size, v.allocation_ratio,
         coalesce(to_timestamp(v.updated), now())
       from unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[], $7::int[], $8::float8[], $9::float8[])
         as v (provider_id, part, total, reserved, min_unit, max_unit, step_size, allocation_ratio, updated)
       where exists (select from resource_providers p where p.id = v.provider_id)
       on conflict (provider_id, class_id) do update set total = excluded.total, reserved = excluded.reserved,
         min_unit = excluded.min_unit, max_unit = excluded.max_unit, step_size = excluded.step_size,
         allocation_ratio = excluded.allocation_ratio, updated_at = excluded.updated_at
       returning provider_id, class_id as part`,
      [
        "provider_id",
        "part",
        "total",
        "reserved",
        "min_unit",
        "max_unit",
        "step_size",
        "allocation_ratio",
        "updated",
      ].map((name) => column(fitting, name)),
    );
    reportUntaken(context, fitting, taken, "inventories of providers that do not exist");
  },
);
