import { batchOf, type CopyContext, type CopyStep, ledgerUuid } from "./copy-step.ts";
import type { SourceRow } from "./source.ts";

const UNKNOWN_TYPE = "unknown";
/** Upstream's owner of consumers of which none is known: `incomplete_consumer_project_id`. */
const INCOMPLETE_OWNER = "00000000-0000-0000-0000-000000000000";

/**
 * Copies consumers, each batch with all allocations of its consumers. A consumer that holds nothing (or nothing that
 * fits) is left out.
 */
export const copyConsumers: CopyStep = {
  what: "consumers and allocations",
  async copy(context, afterId, rowsMax) {
    const consumers = await readConsumers(context, afterId, rowsMax);
    const { lastId } = batchOf(consumers);
    if (lastId === null) return { lastId, rows: 0 };
    const allocations = await readAllocations(context, afterId, lastId);
    await putAllocations(context, allocations);
    const holders = await putConsumers(context, consumers);
    return { lastId, rows: holders + allocations.length };
  },
};

function readConsumers(
  { source, names }: CopyContext,
  afterId: number,
  rowsMax: number,
): Promise<readonly SourceRow[]> {
  // The column came with the table of types.
  const type = names.consumerTypes.size > 0 ? "c.consumer_type_id" : "null";
  return source.query(
    `select c.id, c.uuid, coalesce(c.generation, 0) as generation, p.external_id as project_id, u.external_id as user_id,
       ${type} as type_id, ${source.epoch("c.created_at")} as created,
       ${source.epoch("coalesce(c.updated_at, c.created_at)")} as updated
     from consumers c left join projects p on p.id = c.project_id left join users u on u.id = c.user_id
     where c.id > ${afterId} order by c.id limit ${rowsMax}`,
  );
}

/** One row for each consumer, provider and class: upstream's tables do not prevent two of them. */
function readAllocations({ source }: CopyContext, afterId: number, lastId: number): Promise<readonly SourceRow[]> {
  return source.query(
    `select a.consumer_id as consumer, a.resource_provider_id as provider_id, a.resource_class_id as name_id,
       sum(a.used) as amount, max(${source.epoch("coalesce(a.updated_at, a.created_at)")}) as updated
     from allocations a join consumers c on c.uuid = a.consumer_id
     where c.id > ${afterId} and c.id <= ${lastId}
     group by a.consumer_id, a.resource_provider_id, a.resource_class_id`,
  );
}

interface FittingAllocation {
  readonly consumer: string;
  readonly providerId: number;
  readonly classId: number;
  readonly amount: number;
  readonly updated: unknown;
}

async function putAllocations(context: CopyContext, rows: readonly SourceRow[]): Promise<void> {
  const fitting = rows.flatMap((row): FittingAllocation[] => {
    const classId = context.names.classes.get(Number(row.name_id));
    const consumer = ledgerUuid(String(row.consumer));
    const label = `consumer ${row.consumer}, provider ${row.provider_id}, class id ${row.name_id}`;
    if (classId === undefined) context.rejected.add("allocations of unknown classes", label);
    else if (consumer === null) context.rejected.add("allocations of consumers without a valid UUID", label);
    else if (Number(row.amount) <= 0) context.rejected.add("allocations of nothing", label);
    else
      return [
        { consumer, providerId: Number(row.provider_id), classId, amount: Number(row.amount), updated: row.updated },
      ];
    return [];
  });
  const { rows: taken } = await context.ledger.query<{ consumer: string; provider_id: number; class_id: number }>(
    `insert into allocations (consumer_uuid, provider_id, class_id, amount, updated_at)
     select v.consumer, v.provider_id, v.class_id, v.amount, coalesce(to_timestamp(v.updated), now())
     from unnest($1::uuid[], $2::int[], $3::int[], $4::bigint[], $5::float8[]) as v (consumer, provider_id, class_id, amount, updated)
     where exists (select from inventories i where i.provider_id = v.provider_id and i.class_id = v.class_id)
     on conflict (consumer_uuid, provider_id, class_id) do update set amount = excluded.amount, updated_at = excluded.updated_at
     returning consumer_uuid as consumer, provider_id, class_id`,
    [
      fitting.map((one) => one.consumer),
      fitting.map((one) => one.providerId),
      fitting.map((one) => one.classId),
      fitting.map((one) => one.amount),
      fitting.map((one) => one.updated),
    ],
  );
  const keys = new Set(taken.map((one) => `${one.consumer} ${one.provider_id} ${one.class_id}`));
  for (const one of fitting) {
    if (!keys.has(`${one.consumer} ${one.providerId} ${one.classId}`))
      context.rejected.add(
        "orphan allocations: their inventory does not exist",
        `consumer ${one.consumer}, provider ${one.providerId}, class id ${one.classId}`,
      );
  }
}

/** Writes the consumers, and returns how many of them hold something. */
async function putConsumers(context: CopyContext, rows: readonly SourceRow[]): Promise<number> {
  const fitting = rows.filter((row) => ledgerUuid(String(row.uuid)) !== null);
  for (const row of rows) {
    if (row.project_id === null || row.user_id === null)
      context.rejected.add(
        `consumers whose project or user does not exist: now owned by ${INCOMPLETE_OWNER}`,
        String(row.uuid),
      );
  }
  const types = context.names.consumerTypes;
  const { rowCount } = await context.ledger.query(
    `insert into consumers (uuid, generation, project_id, user_id, type, created_at, updated_at)
     select v.uuid, v.generation, v.project_id, v.user_id, v.type, coalesce(to_timestamp(v.created), now()),
       coalesce(to_timestamp(v.updated), now())
     from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::float8[])
       as v (uuid, generation, project_id, user_id, type, created, updated)
     where exists (select from allocations a where a.consumer_uuid = v.uuid)
     on conflict (uuid) do update set generation = excluded.generation, project_id = excluded.project_id,
       user_id = excluded.user_id, type = excluded.type, created_at = excluded.created_at, updated_at = excluded.updated_at`,
    [
      fitting.map((row) => ledgerUuid(String(row.uuid))),
      fitting.map((row) => row.generation),
      fitting.map((row) => row.project_id ?? INCOMPLETE_OWNER),
      fitting.map((row) => row.user_id ?? INCOMPLETE_OWNER),
      fitting.map((row) => (row.type_id === null ? UNKNOWN_TYPE : (types.get(Number(row.type_id)) ?? UNKNOWN_TYPE))),
      fitting.map((row) => row.created),
      fitting.map((row) => row.updated),
    ],
  );
  return rowCount ?? 0;
}

/** Reports allocations whose consumers do not exist, since no batch of consumers contains them. */
export async function reportOrphans({ source, rejected }: Pick<CopyContext, "source" | "rejected">): Promise<void> {
  const orphan = "from allocations a left join consumers c on c.uuid = a.consumer_id where c.id is null";
  const [total] = await source.query(`select count(*) as orphans ${orphan}`);
  const count = Number(total?.orphans ?? 0);
  if (count === 0) return;
  const some = await source.query(`select a.consumer_id, a.resource_provider_id ${orphan} order by a.id limit 10`);
  const what = "orphan allocations: their consumer does not exist";
  some.forEach((row, index) => {
    const rest = index === 0 ? count - some.length + 1 : 1;
    rejected.add(what, `consumer ${row.consumer_id}, provider ${row.resource_provider_id}`, rest);
  });
}
