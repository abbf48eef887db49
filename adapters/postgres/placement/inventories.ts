import type { Pool, PoolClient } from "pg";
import { resourceClass as asResourceClass, type ProviderUuid, type ResourceClass } from "../../../core/ledger/ids.ts";
import type { Inventory } from "../../../core/ledger/model.ts";
import type { Dated, InventoryOutcome, InventoryRow } from "../../../core/placement/placement-store.ts";
import { inTransaction } from "../transaction.ts";
import { bumpGeneration, findProvider, lockProvider, type ProviderWithIds, type Queryable } from "./provider-rows.ts";

interface Row {
  name: string;
  total: number;
  reserved: number;
  min_unit: number;
  max_unit: number;
  step_size: number;
  allocation_ratio: number;
  used: string;
  updated_at_ms: number;
}

type Inventories = ReadonlyMap<ResourceClass, Inventory>;

async function inventoryRows(db: Queryable, providerId: number): Promise<ReadonlyMap<ResourceClass, InventoryRow>> {
  const { rows } = await db.query<Row>(
    `select c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, i.used,
            (extract(epoch from i.updated_at) * 1000)::float8 as updated_at_ms
     from inventories i join resource_classes c on c.id = i.class_id
     where i.provider_id = $1 order by c.id`,
    [providerId],
  );
  return new Map(rows.map((row) => [asResourceClass(row.name), fromRow(row)]));
}

const fromRow = (row: Row): InventoryRow => ({
  total: row.total,
  reserved: row.reserved,
  minUnit: row.min_unit,
  maxUnit: row.max_unit,
  stepSize: row.step_size,
  allocationRatio: row.allocation_ratio,
  used: Number(row.used),
  updatedAtMs: row.updated_at_ms,
});

export async function readInventories(
  pool: Pool,
  uuid: ProviderUuid,
): Promise<Dated<ReadonlyMap<ResourceClass, InventoryRow>> | null> {
  const provider = await findProvider(pool, uuid);
  if (provider === null) return null;
  const value = await inventoryRows(pool, provider.id);
  return { value, generation: provider.generation, updatedAtMs: provider.updatedAtMs };
}

/** Runs `write` on the locked provider if it is at `expected`; whatever it returns is the refusal, nothing means done. */
function writeInventories(
  pool: Pool,
  uuid: ProviderUuid,
  expected: number | undefined,
  write: (client: PoolClient, provider: ProviderWithIds) => Promise<InventoryOutcome | undefined>,
): Promise<InventoryOutcome> {
  return inTransaction(pool, async (client): Promise<InventoryOutcome> => {
    const provider = await lockProvider(client, uuid);
    if (provider === null) return { kind: "not-found" };
    if (expected !== undefined && expected !== provider.generation)
      return { kind: "generation-conflict", actual: provider.generation };
    const refused = await write(client, provider);
    if (refused) return refused;
    const generation = await bumpGeneration(client, provider.id);
    return { kind: "written", generation, inventories: await inventoryRows(client, provider.id) };
  });
}

export function setInventories(
  pool: Pool,
  uuid: ProviderUuid,
  expected: number,
  inventories: Inventories,
): Promise<InventoryOutcome> {
  return writeInventories(pool, uuid, expected, (client, provider) =>
    replaceInventories(client, provider.id, inventories),
  );
}

/** Replaces all inventories of a locked provider: what is left out must not be in use, what stays keeps its `used`. */
export async function replaceInventories(
  client: PoolClient,
  providerId: number,
  inventories: Inventories,
): Promise<InventoryOutcome | undefined> {
  const unknown = await firstUnknownClass(client, [...inventories.keys()]);
  if (unknown) return { kind: "unknown-class", resourceClass: unknown };
  const inUse = await removeInventories(client, providerId, [...inventories.keys()]);
  if (inUse.length > 0) return { kind: "in-use", resourceClasses: inUse };
  await upsertInventories(client, providerId, inventories);
  return undefined;
}

/** Adds or changes these inventories and leaves the others; returns the first class that does not exist (nothing is written then). */
export async function widenInventories(
  client: PoolClient,
  providerId: number,
  inventories: Inventories,
): Promise<ResourceClass | undefined> {
  const unknown = await firstUnknownClass(client, [...inventories.keys()]);
  if (unknown === undefined) await upsertInventories(client, providerId, inventories);
  return unknown;
}

async function firstUnknownClass(
  client: PoolClient,
  names: readonly ResourceClass[],
): Promise<ResourceClass | undefined> {
  const { rows } = await client.query<{ name: string }>(
    `select wanted.name from unnest($1::text[]) with ordinality as wanted (name, nr)
     where not exists (select from resource_classes c where c.name = wanted.name) order by nr limit 1`,
    [names],
  );
  return rows[0] ? asResourceClass(rows[0].name) : undefined;
}

/** Deletes the inventories of all classes but these; deletes nothing and names them when some are in use. */
async function removeInventories(
  client: PoolClient,
  providerId: number,
  keep: readonly ResourceClass[],
): Promise<readonly ResourceClass[]> {
  const { rows } = await client.query<{ name: string; in_use: boolean }>(
    `select c.name, i.used > 0 as in_use from inventories i join resource_classes c on c.id = i.class_id
     where i.provider_id = $1 and c.name <> all ($2::text[]) order by i.class_id for update of i`,
    [providerId, keep],
  );
  const inUse = rows.filter((row) => row.in_use);
  if (inUse.length > 0) return inUse.map((row) => asResourceClass(row.name));
  await client.query(
    "delete from inventories where provider_id = $1 and class_id in (select id from resource_classes where name = any ($2::text[]))",
    [providerId, rows.map((row) => row.name)],
  );
  return [];
}

async function upsertInventories(client: PoolClient, providerId: number, inventories: Inventories): Promise<void> {
  if (inventories.size === 0) return;
  const list = [...inventories];
  await client.query(
    `insert into inventories as i (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
     select $1, c.id, n.total, n.reserved, n.min_unit, n.max_unit, n.step_size, n.allocation_ratio
     from unnest($2::text[], $3::int[], $4::int[], $5::int[], $6::int[], $7::int[], $8::float8[])
            as n (name, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
     join resource_classes c on c.name = n.name
     order by c.id
     on conflict (provider_id, class_id) do update set total = excluded.total, reserved = excluded.reserved,
       min_unit = excluded.min_unit, max_unit = excluded.max_unit, step_size = excluded.step_size,
       allocation_ratio = excluded.allocation_ratio, updated_at = now()`,
    [
      providerId,
      list.map(([name]) => name),
      list.map(([, inventory]) => inventory.total),
      list.map(([, inventory]) => inventory.reserved),
      list.map(([, inventory]) => inventory.minUnit),
      list.map(([, inventory]) => inventory.maxUnit),
      list.map(([, inventory]) => inventory.stepSize),
      list.map(([, inventory]) => inventory.allocationRatio),
    ],
  );
}

/** Adds one class to a provider that lacks it (`create`), or changes one that it has (`update`). */
export function putInventory(
  pool: Pool,
  uuid: ProviderUuid,
  expected: number | undefined,
  name: ResourceClass,
  inventory: Inventory,
  mode: "create" | "update",
): Promise<InventoryOutcome> {
  return writeInventories(pool, uuid, expected, async (client, provider) => {
    const unknown = await firstUnknownClass(client, [name]);
    if (unknown) return { kind: "unknown-class", resourceClass: unknown };
    const has = (await inventoryRows(client, provider.id)).has(name);
    if (mode === "create" && has) return { kind: "exists", resourceClass: name };
    if (mode === "update" && !has) return { kind: "no-inventory", resourceClass: name };
    await upsertInventories(client, provider.id, new Map([[name, inventory]]));
    return undefined;
  });
}

export function deleteInventory(pool: Pool, uuid: ProviderUuid, name: ResourceClass | null): Promise<InventoryOutcome> {
  return writeInventories(pool, uuid, undefined, async (client, provider) => {
    const classes = [...(await inventoryRows(client, provider.id)).keys()];
    if (name !== null && !classes.includes(name)) return { kind: "no-inventory", resourceClass: name };
    const inUse = await removeInventories(
      client,
      provider.id,
      name === null ? [] : classes.filter((other) => other !== name),
    );
    return inUse.length > 0 ? { kind: "in-use", resourceClasses: inUse } : undefined;
  });
}
