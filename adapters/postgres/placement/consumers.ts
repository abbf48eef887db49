import type { Pool } from "pg";
import {
  type ConsumerUuid,
  consumerUuid,
  type ProviderUuid,
  providerUuid,
  type ResourceClass,
  resourceClass,
} from "../../../core/ledger/ids.ts";
import type {
  ConsumerAllocations,
  ConsumerTypeUsage,
  PlacementStore,
} from "../../../core/stores/cell/placement-store.ts";
import { ask } from "./prepared.ts";
import { findProvider } from "./provider-rows.ts";

interface ConsumerRow {
  uuid: string;
  generation: number;
  project_id: string;
  user_id: string;
  type: string;
  provider: string;
  provider_generation: number;
  class: string;
  amount: string;
  updated_at_ms: number;
}

/** The consumers that exist, each with all its allocations, as of one moment. Unknown consumers are left out. */
export async function readConsumers(
  pool: Pool,
  uuids: readonly ConsumerUuid[],
): Promise<readonly ConsumerAllocations[]> {
  const rows = await ask<ConsumerRow>(
    pool,
    `select k.uuid, k.generation, k.project_id, k.user_id, k.type, p.uuid as provider, p.generation as provider_generation,
            c.name as class, a.amount, (extract(epoch from a.updated_at) * 1000)::float8 as updated_at_ms
     from consumers k join allocations a on a.consumer_uuid = k.uuid
     join resource_providers p on p.id = a.provider_id join resource_classes c on c.id = a.class_id
     where k.uuid = any ($1::uuid[]) order by k.uuid, p.id, c.id`,
    [uuids],
  );
  return Map.groupBy(rows, (row) => row.uuid)
    .values()
    .map(fromRows)
    .toArray();
}

function fromRows(rows: readonly ConsumerRow[]): ConsumerAllocations {
  const first = rows[0]!;
  return {
    uuid: consumerUuid(first.uuid),
    generation: first.generation,
    projectId: first.project_id,
    userId: first.user_id,
    type: first.type,
    items: rows.map((row) => ({
      provider: providerUuid(row.provider),
      resourceClass: resourceClass(row.class),
      amount: Number(row.amount),
      providerGeneration: row.provider_generation,
    })),
    updatedAtMs: Math.max(...rows.map((row) => row.updated_at_ms)),
  };
}

export async function readAllocationsOfProvider(
  pool: Pool,
  uuid: ProviderUuid,
): ReturnType<PlacementStore["allocationsOfProvider"]> {
  const provider = await findProvider(pool, uuid);
  if (provider === null) return null;
  const rows = await ask<{
    consumer: string;
    generation: number;
    class: string;
    amount: string;
    updated_at_ms: number;
  }>(
    pool,
    `select k.uuid as consumer, k.generation, c.name as class, a.amount, (extract(epoch from a.updated_at) * 1000)::float8 as updated_at_ms
     from allocations a join consumers k on k.uuid = a.consumer_uuid join resource_classes c on c.id = a.class_id
     where a.provider_id = $1 order by k.uuid, c.id`,
    [provider.id],
  );
  const allocations = rows.map((row) => ({
    consumer: consumerUuid(row.consumer),
    consumerGeneration: row.generation,
    resourceClass: resourceClass(row.class),
    amount: Number(row.amount),
    updatedAtMs: row.updated_at_ms,
  }));
  return { provider, allocations };
}

/** Reads `used` of each inventory, which the ledger maintains, so nothing is summed here. */
export async function readUsagesOfProvider(
  pool: Pool,
  uuid: ProviderUuid,
): ReturnType<PlacementStore["usagesOfProvider"]> {
  const provider = await findProvider(pool, uuid);
  if (provider === null) return null;
  const rows = await ask<{ class: string; used: string }>(
    pool,
    "select c.name as class, i.used from inventories i join resource_classes c on c.id = i.class_id where i.provider_id = $1 order by c.id",
    [provider.id],
  );
  return { provider, usages: new Map(rows.map((row) => [resourceClass(row.class), Number(row.used)])) };
}

/** The usage of a project (or of one of its users), by type of consumer. A consumer counts once, however many classes it holds. */
export async function readUsagesOfProject(
  pool: Pool,
  projectId: string,
  userId: string | null,
): Promise<readonly ConsumerTypeUsage[]> {
  const rows = await ask<{ type: string; consumers: string; class: string; amount: string }>(
    pool,
    `with held as (
       select k.type, k.uuid, a.class_id, a.amount from consumers k join allocations a on a.consumer_uuid = k.uuid
       where k.project_id = $1 and ($2::text is null or k.user_id = $2)
     ), counted as (select type, count(distinct uuid) as consumers from held group by type)
     select held.type, counted.consumers, c.name as class, sum(held.amount) as amount
     from held join counted using (type) join resource_classes c on c.id = held.class_id
     group by held.type, counted.consumers, c.id, c.name order by held.type, c.id`,
    [projectId, userId],
  );
  return Map.groupBy(rows, (row) => row.type)
    .entries()
    .map(([type, list]) => ({
      type,
      consumerCount: Number(list[0]!.consumers),
      usages: new Map<ResourceClass, number>(list.map((row) => [resourceClass(row.class), Number(row.amount)])),
    }))
    .toArray();
}
