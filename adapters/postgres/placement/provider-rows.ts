import { type AggregateUuid, type ProviderUuid, providerUuid } from "../../../core/ledger/ids.ts";
import type { ProviderFilter, ProviderRow } from "../../../core/stores/cell/placement-store.ts";
import { ask, type Queryable } from "./prepared.ts";

interface Row {
  id: number;
  uuid: string;
  name: string;
  generation: number;
  parent: string | null;
  root: string;
  root_id: number;
  updated_at_ms: number;
}

/** A provider with the ids that other tables use for it. */
export interface ProviderWithIds extends ProviderRow {
  readonly id: number;
  readonly rootId: number;
}

const COLUMNS = `p.id, p.uuid, p.name, p.generation, parent.uuid as parent, root.uuid as root, p.root_id,
  (extract(epoch from p.updated_at) * 1000)::float8 as updated_at_ms`;
const FROM = `resource_providers p
  join resource_providers root on root.id = p.root_id
  left join resource_providers parent on parent.id = p.parent_id`;

function fromRow(row: Row): ProviderWithIds {
  return {
    id: row.id,
    rootId: row.root_id,
    uuid: providerUuid(row.uuid),
    name: row.name,
    generation: row.generation,
    parent: row.parent === null ? null : providerUuid(row.parent),
    root: providerUuid(row.root),
    updatedAtMs: row.updated_at_ms,
  };
}

export async function findProvider(db: Queryable, uuid: ProviderUuid): Promise<ProviderWithIds | null> {
  const rows = await ask<Row>(db, `select ${COLUMNS} from ${FROM} where p.uuid = $1`, [uuid]);
  return rows[0] ? fromRow(rows[0]) : null;
}

/**
 * Providers that pass every rule of the filter, sorted by name. The rules are subqueries of one statement, so that the answer is
 * consistent. Source of the rules: Placement API, `GET /resource_providers`.
 */
export async function findProviders(db: Queryable, filter: ProviderFilter): Promise<readonly ProviderRow[]> {
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const rules = [
    ...(filter.name === undefined ? [] : [`p.name = ${bind(filter.name)}`]),
    ...(filter.uuids === undefined ? [] : [`p.uuid = any (${bind(filter.uuids)}::uuid[])`]),
    ...(filter.inTree === undefined
      ? []
      : [`p.root_id = (select root_id from resource_providers where uuid = ${bind(filter.inTree)})`]),
    ...(filter.memberOf ?? []).map((any) => memberRule(bind(any))),
    ...(filter.forbiddenAggregates?.length
      ? [`not ${memberRule(bind(filter.forbiddenAggregates as AggregateUuid[]))}`]
      : []),
    ...(filter.requiredTraits ?? []).map((any) => traitRule(bind(any))),
    ...(filter.forbiddenTraits?.length ? [`not ${traitRule(bind(filter.forbiddenTraits))}`] : []),
    ...[...(filter.resources ?? [])].map(([resourceClass, amount]) => roomRule(bind(resourceClass), bind(amount))),
  ];
  const where = rules.length > 0 ? `where ${rules.join(" and ")}` : "";
  const { rows } = await db.query<Row>(`select ${COLUMNS} from ${FROM} ${where} order by p.id`, values);
  return rows.map(fromRow);
}

const memberRule = (aggregates: string): string =>
  `exists (select from provider_aggregates a where a.provider_id = p.id and a.aggregate = any (${aggregates}::uuid[]))`;

const traitRule = (traits: string): string =>
  `exists (select from provider_traits pt join traits t on t.id = pt.trait_id where pt.provider_id = p.id and t.name = any (${traits}::text[]))`;

const roomRule = (resourceClass: string, amount: string): string =>
  `exists (select from inventories i join resource_classes c on c.id = i.class_id
    where i.provider_id = p.id and c.name = ${resourceClass}
      and i.used + ${amount}::bigint <= ledger_capacity(i.total, i.reserved, i.allocation_ratio)
      and ${amount}::bigint between i.min_unit and i.max_unit and ${amount}::bigint % i.step_size = 0)`;
