import { batchOf, type CopyContext, type CopyStep, ledgerUuid } from "./copy-step.ts";
import type { SourceRow } from "./source.ts";

// Providers keep their ids: the ledger had none of its own. A parent can be younger than its child (it was moved), so trees
// are copied in three passes, each of which refers only to rows that exist already: roots; the others, as children of their
// root; parents.

/** Providers without a parent. */
export const copyRoots: CopyStep = {
  what: "root providers",
  async copy(context, afterId, rowsMax) {
    const rows = await readProviders(context, "p.parent_provider_id is null", afterId, rowsMax);
    await putProviders(context, rows, "id");
    return batchOf(rows);
  },
};

/** Copies providers below a root, for now as children of that root. */
export const copyChildren: CopyStep = {
  what: "child providers",
  async copy(context, afterId, rowsMax) {
    const rows = await readProviders(context, "p.parent_provider_id is not null", afterId, rowsMax);
    await putProviders(context, rows, "root_id");
    return batchOf(rows);
  },
};

/** Sets the parents of providers that are further down. It counts no rows, because the providers have been counted. */
export const linkParents: CopyStep = {
  what: "parents",
  async copy(context, afterId, rowsMax) {
    const below = "p.parent_provider_id is not null and p.parent_provider_id <> p.root_provider_id";
    const rows = await readProviders(context, below, afterId, rowsMax);
    const { rows: linked } = await context.ledger.query<{ id: number }>(
      `update resource_providers p set parent_id = parent.id
       from unnest($1::int[], $2::int[]) as v (id, parent_id) join resource_providers parent on parent.id = v.parent_id
       where p.id = v.id returning p.id`,
      [rows.map((row) => row.id), rows.map((row) => row.parent_id)],
    );
    reportOthers(context, rows, linked, "providers whose parent does not exist");
    return { ...batchOf(rows), rows: 0 };
  },
};

function readProviders(
  { source }: CopyContext,
  where: string,
  afterId: number,
  rowsMax: number,
): Promise<readonly SourceRow[]> {
  return source.query(
    `select p.id, p.uuid, p.name, coalesce(p.generation, 0) as generation, coalesce(p.root_provider_id, p.id) as root_id,
       p.parent_provider_id as parent_id, ${source.epoch("coalesce(p.updated_at, p.created_at)")} as updated
     from resource_providers p where ${where} and p.id > ${afterId} order by p.id limit ${rowsMax}`,
  );
}

async function putProviders(context: CopyContext, rows: readonly SourceRow[], root: "id" | "root_id"): Promise<void> {
  const fitting = rows.filter((row) => ledgerUuid(String(row.uuid)) !== null);
  reportOthers(context, rows, fitting, "providers without a valid UUID");
  const { rows: put } = await context.ledger.query<{ id: number }>(
    `insert into resource_providers (id, uuid, name, generation, root_id, parent_id, updated_at) overriding system value
     select v.id, v.uuid, v.name, v.generation, v.root_id, nullif(v.root_id, v.id), coalesce(to_timestamp(v.updated), now())
     from unnest($1::int[], $2::uuid[], $3::text[], $4::int[], $5::int[], $6::float8[])
       as v (id, uuid, name, generation, root_id, updated)
     where v.root_id = v.id or exists (select from resource_providers r where r.id = v.root_id)
     on conflict (id) do update set uuid = excluded.uuid, name = excluded.name, generation = excluded.generation,
       root_id = excluded.root_id, updated_at = excluded.updated_at
     returning id`,
    [
      fitting.map((row) => row.id),
      fitting.map((row) => ledgerUuid(String(row.uuid))),
      fitting.map((row) => row.name ?? ledgerUuid(String(row.uuid))),
      fitting.map((row) => row.generation),
      fitting.map((row) => row[root]),
      fitting.map((row) => row.updated),
    ],
  );
  reportOthers(context, fitting, put, "providers whose root does not exist");
}

function reportOthers(
  { rejected }: CopyContext,
  rows: readonly SourceRow[],
  fitting: readonly { readonly id?: unknown }[],
  what: string,
): void {
  const ids = new Set(fitting.map(({ id }) => Number(id)));
  for (const row of rows) if (!ids.has(Number(row.id))) rejected.add(what, `${row.uuid} (${row.name})`);
}
