import type { Pool, PoolClient } from "pg";
import type { AggregateRecord } from "../../../core/scheduling/aggregate-record.ts";
import { queryRows, selectMs } from "../client/store-query.ts";

interface AggregateRow {
  readonly id: number;
  readonly uuid: string;
  readonly name: string;
  readonly metadata: Record<string, string>;
  readonly hosts: string[];
  readonly created_at_ms: number;
  readonly updated_at_ms: number | null;
}

const SELECT = `select a.id, a.uuid, a.name, a.metadata,
    coalesce((
      select array_agg(h.host order by h.host collate "C") from aggregate_hosts h where h.aggregate_id = a.id
    ), '{}') as hosts,
    ${selectMs("created_at", "a.")}, ${selectMs("updated_at", "a.")}
  from aggregates a`;

export async function selectAggregates(client: Pool | PoolClient): Promise<readonly AggregateRecord[]> {
  const rows = await queryRows<AggregateRow>(client, {
    name: "aggregates",
    text: `${SELECT} order by a.id`,
    values: [],
  });
  return rows.map(aggregateOf);
}

export async function selectAggregate(client: Pool | PoolClient, id: number): Promise<AggregateRecord | null> {
  const [row] = await queryRows<AggregateRow>(client, {
    name: "aggregate",
    text: `${SELECT} where a.id = $1`,
    values: [id],
  });
  return row === undefined ? null : aggregateOf(row);
}

function aggregateOf(row: AggregateRow): AggregateRecord {
  return {
    id: row.id,
    uuid: row.uuid,
    name: row.name,
    metadata: row.metadata,
    hosts: row.hosts,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
  };
}
