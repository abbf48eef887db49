import type { Pool } from "pg";
import { type ResourceClass, resourceClass, type Trait, trait } from "../../../core/ledger/ids.ts";
import type { NameRow } from "../../../core/stores/cell/placement-store.ts";
import { ask } from "./prepared.ts";

/** The two tables of names (resource classes and traits), which behave alike. */
const TABLES = {
  resource_classes:
    "exists (select from inventories where class_id = n.id) or exists (select from allocations where class_id = n.id)",
  traits: "exists (select from provider_traits where trait_id = n.id)",
} as const;
type Table = keyof typeof TABLES;

const FOREIGN_KEY_VIOLATION = "23503";
const UNIQUE_VIOLATION = "23505";

async function listNames(
  pool: Pool,
  table: Table,
  used?: boolean,
): Promise<readonly { name: string; updated_at_ms: number }[]> {
  const where = used === undefined ? "" : `where (${TABLES[table]}) = ${used}`;
  return ask<{ name: string; updated_at_ms: number }>(
    pool,
    `select n.name, (extract(epoch from n.updated_at) * 1000)::float8 as updated_at_ms from ${table} n ${where} order by n.id`,
  );
}

async function createName(pool: Pool, table: Table, name: string): Promise<"created" | "exists"> {
  const { rowCount } = await pool.query(`insert into ${table} (name) values ($1) on conflict (name) do nothing`, [
    name,
  ]);
  return rowCount === 1 ? "created" : "exists";
}

async function deleteName(pool: Pool, table: Table, name: string): Promise<"deleted" | "not-found" | "in-use"> {
  try {
    const { rowCount } = await pool.query(`delete from ${table} where name = $1`, [name]);
    return rowCount === 1 ? "deleted" : "not-found";
  } catch (error) {
    if ((error as { code?: string }).code === FOREIGN_KEY_VIOLATION) return "in-use";
    throw error;
  }
}

export async function readResourceClasses(pool: Pool): Promise<readonly NameRow<ResourceClass>[]> {
  return (await listNames(pool, "resource_classes")).map((row) => ({
    name: resourceClass(row.name),
    updatedAtMs: row.updated_at_ms,
  }));
}

export async function readAllTraits(pool: Pool, associated?: boolean): Promise<readonly NameRow<Trait>[]> {
  return (await listNames(pool, "traits", associated)).map((row) => ({
    name: trait(row.name),
    updatedAtMs: row.updated_at_ms,
  }));
}

export const createResourceClass = (pool: Pool, name: ResourceClass) => createName(pool, "resource_classes", name);
export const createTrait = (pool: Pool, name: Trait) => createName(pool, "traits", name);
export const deleteResourceClass = (pool: Pool, name: ResourceClass) => deleteName(pool, "resource_classes", name);
export const removeTrait = (pool: Pool, name: Trait) => deleteName(pool, "traits", name);

export async function renameResourceClass(
  pool: Pool,
  from: ResourceClass,
  to: ResourceClass,
): Promise<"renamed" | "not-found" | "exists"> {
  try {
    const { rowCount } = await pool.query("update resource_classes set name = $2, updated_at = now() where name = $1", [
      from,
      to,
    ]);
    return rowCount === 1 ? "renamed" : "not-found";
  } catch (error) {
    if ((error as { code?: string }).code === UNIQUE_VIOLATION) return "exists";
    throw error;
  }
}
