import type { ClientBase, Pool, PoolClient } from "pg";
import {
  aggregateUuid,
  type ConsumerUuid,
  consumerUuid,
  type ProviderUuid,
  providerUuid,
  resourceClass,
  trait,
} from "../../../core/ledger/ids.ts";
import type { LedgerDump } from "../../../core/ledger/ledger-dump.ts";
import type { AllocationItem, Consumer, Inventory, Provider } from "../../../core/ledger/model.ts";
import { type InventoryColumns, inventoryOfRow } from "./inventory-row.ts";

interface AllocationRow {
  readonly consumer: string;
  readonly provider: string;
  readonly class: string;
  readonly amount: number;
}

const itemOf = (row: AllocationRow): AllocationItem => ({
  provider: providerUuid(row.provider),
  resourceClass: resourceClass(row.class),
  amount: Number(row.amount),
});

const ALLOCATIONS = `select a.consumer_uuid as consumer, p.uuid as provider, c.name as class, a.amount
  from allocations a join resource_providers p on p.id = a.provider_id join resource_classes c on c.id = a.class_id`;

/** The consumer's allocations by provider and class. Empty when the consumer does not exist. */
export async function readAllocations(pool: Pool, consumer: ConsumerUuid): Promise<readonly AllocationItem[]> {
  const { rows } = await pool.query<AllocationRow>(
    `${ALLOCATIONS} where a.consumer_uuid = $1 order by p.uuid, c.name collate "C"`,
    [consumer],
  );
  return rows.map(itemOf);
}

/** The whole ledger as of one moment. Cost: reads whole tables; for tests and the auditor. */
export async function readDump(pool: Pool): Promise<LedgerDump> {
  const client = await pool.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
    const dump = { providers: await readProviders(client), consumers: await readHolders(client) };
    await client.query("commit");
    client.release();
    return dump;
  } catch (error) {
    client.release(error as Error); // This closes the connection, and its transaction with it.
    throw error;
  }
}

interface MutableProvider extends Provider {
  readonly inventories: Map<ReturnType<typeof resourceClass>, Inventory & { readonly used: number }>;
  readonly traits: Set<ReturnType<typeof trait>>;
  readonly aggregates: Set<ReturnType<typeof aggregateUuid>>;
}

/**
 * Providers with their inventories, traits and aggregates, sorted by UUID, as the client's transaction sees them: those of the trees of these roots, or
 * all of them.
 */
export async function readProviders(
  client: ClientBase,
  roots: readonly ProviderUuid[] | null = null,
): Promise<readonly Provider[]> {
  const values = [roots];
  const inTrees =
    "($1::uuid[] is null or p.root_id in (select r.id from resource_providers r where r.uuid = any ($1)))";
  const byUuid = new Map<ProviderUuid, MutableProvider>();
  const providers = await client.query(
    `select p.uuid, p.name, parent.uuid as parent, root.uuid as root, p.generation
     from resource_providers p join resource_providers root on root.id = p.root_id
     left join resource_providers parent on parent.id = p.parent_id where ${inTrees} order by p.uuid`,
    values,
  );
  for (const row of providers.rows) {
    byUuid.set(row.uuid, { ...row, inventories: new Map(), traits: new Set(), aggregates: new Set() });
  }
  const inventories = await client.query<
    InventoryColumns & { readonly uuid: ProviderUuid; readonly class: string; readonly used: string }
  >(
    `select p.uuid, c.name as class, v.* from inventories v
     join resource_providers p on p.id = v.provider_id join resource_classes c on c.id = v.class_id
     where ${inTrees} order by p.uuid, c.name collate "C"`,
    values,
  );
  for (const row of inventories.rows) {
    byUuid.get(row.uuid)?.inventories.set(resourceClass(row.class), {
      ...inventoryOfRow(row),
      used: Number(row.used),
    });
  }
  const traits = await client.query(
    `select p.uuid, t.name from provider_traits q
     join resource_providers p on p.id = q.provider_id join traits t on t.id = q.trait_id
     where ${inTrees} order by p.uuid, t.name collate "C"`,
    values,
  );
  for (const row of traits.rows) byUuid.get(row.uuid)?.traits.add(trait(row.name));
  const aggregates = await client.query(
    `select p.uuid, q.aggregate from provider_aggregates q
     join resource_providers p on p.id = q.provider_id where ${inTrees} order by p.uuid, q.aggregate`,
    values,
  );
  for (const row of aggregates.rows) byUuid.get(row.uuid)?.aggregates.add(aggregateUuid(row.aggregate));
  return [...byUuid.values()];
}

/** Reads these consumers, or all of them, with their allocations. */
export async function readHolders(
  client: PoolClient,
  consumers: readonly ConsumerUuid[] | null = null,
): Promise<LedgerDump["consumers"]> {
  const byUuid = new Map<ConsumerUuid, Consumer & { readonly items: AllocationItem[] }>();
  const values = [consumers];
  const found = await client.query(
    `select uuid, generation, project_id as "projectId", user_id as "userId", type from consumers
     where $1::uuid[] is null or uuid = any ($1) order by uuid`,
    values,
  );
  for (const row of found.rows) byUuid.set(row.uuid, { ...row, items: [] });
  const allocations = await client.query<AllocationRow>(
    `${ALLOCATIONS} where $1::uuid[] is null or a.consumer_uuid = any ($1)
     order by a.consumer_uuid, p.uuid, c.name collate "C"`,
    values,
  );
  for (const row of allocations.rows) byUuid.get(consumerUuid(row.consumer))?.items.push(itemOf(row));
  return [...byUuid.values()];
}
