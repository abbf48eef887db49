import type { Pool } from "pg";
import { resourceClass as asResourceClass, type ProviderUuid, type ResourceClass } from "../../../core/ledger/ids.ts";
import type { Inventory } from "../../../core/ledger/model.ts";
import type {
  Dated,
  InventoryOutcome,
  InventoryRow,
  PlacementStore,
} from "../../../core/stores/cell/placement-store.ts";
import { retryConflicts } from "../client/transaction.ts";
import { type InventoryColumns, inventoryOfRow } from "../ledger/inventory-row.ts";
import { ask, generationParameter, type Queryable } from "./prepared.ts";
import { findProvider } from "./provider-rows.ts";
import { type WriteTogether, writtenOf } from "./write-together.ts";

interface Row extends InventoryColumns {
  readonly name: string;
  readonly used: string;
  readonly updated_at_ms: number;
}

export type Inventories = ReadonlyMap<ResourceClass, Inventory>;

export async function readInventories(
  pool: Pool,
  uuid: ProviderUuid,
): Promise<Dated<ReadonlyMap<ResourceClass, InventoryRow>> | null> {
  const provider = await findProvider(pool, uuid);
  if (provider === null) return null;
  const rows = await ask<Row>(
    pool,
    `select c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, i.used,
            (extract(epoch from i.updated_at) * 1000)::float8 as updated_at_ms
     from inventories i join resource_classes c on c.id = i.class_id
     where i.provider_id = $1 order by c.id`,
    [provider.id],
  );
  const value = new Map(rows.map((row) => [asResourceClass(row.name), fromRow(row)]));
  return { value, generation: provider.generation, updatedAtMs: provider.updatedAtMs };
}

const fromRow = (row: Row): InventoryRow => ({
  ...inventoryOfRow(row),
  used: Number(row.used),
  updatedAtMs: row.updated_at_ms,
});

/** See `placement_write_inventories`. */
export interface InventoryWrite {
  readonly mode: "replace" | "widen" | "create" | "update";
  readonly inventories: Inventories;
}
export interface InventoryRemoval {
  readonly mode: "remove";
  /** Null stands for all classes. */
  readonly resourceClass: ResourceClass | null;
}

/** Calls one function, which is a transaction of its own unless the caller has begun one. */
export async function writeInventories(
  db: Queryable,
  uuid: ProviderUuid,
  expected: number | undefined,
  write: InventoryWrite | InventoryRemoval,
): Promise<InventoryOutcome> {
  const list = write.mode === "remove" ? [] : [...write.inventories];
  const names =
    write.mode !== "remove" ? list.map(([name]) => name) : write.resourceClass === null ? null : [write.resourceClass];
  const column = (field: keyof Inventory) => list.map(([, inventory]) => inventory[field]);
  const rows = await ask<WrittenRow>(
    db,
    "select * from placement_write_inventories($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    [
      ...[uuid, generationParameter(expected), write.mode, names],
      ...(["total", "reserved", "minUnit", "maxUnit", "stepSize", "allocationRatio"] as const).map(column),
    ],
  );
  return outcomeOf(rows[0]!);
}

interface WrittenRow {
  readonly kind: InventoryOutcome["kind"];
  readonly new_generation: number;
  readonly written_at_ms: number;
  readonly names: readonly string[] | null;
}

function outcomeOf({
  kind,
  new_generation: generation,
  written_at_ms: updatedAtMs,
  names,
}: WrittenRow): InventoryOutcome {
  const classes = (names ?? []).map(asResourceClass);
  switch (kind) {
    case "written":
      return { kind, generation, updatedAtMs };
    case "not-found":
      return { kind };
    case "generation-conflict":
      return { kind, actual: generation };
    case "in-use":
      return { kind, resourceClasses: classes };
    case "unknown-class":
    case "exists":
    case "no-inventory":
      return { kind, resourceClass: classes[0]! };
    default:
      return kind satisfies never;
  }
}

/** Replaces all inventories of a provider, with group commit. */
export function inventoryWriter(pool: Pool, together: WriteTogether): PlacementStore["setInventories"] {
  return async (uuid, expected, inventories) => {
    const done = await together({ kind: "inventories", uuid, expected, inventories });
    if (done !== null) return writtenOf(done);
    return retryConflicts(() => writeInventories(pool, uuid, expected, { mode: "replace", inventories }));
  };
}

/** Adds one class that the provider lacks (`create`), or changes one that it has (`update`). */
export function putInventory(
  pool: Pool,
  uuid: ProviderUuid,
  expected: number | undefined,
  name: ResourceClass,
  inventory: Inventory,
  mode: "create" | "update",
): Promise<InventoryOutcome> {
  const inventories = new Map([[name, inventory]]);
  return retryConflicts(() => writeInventories(pool, uuid, expected, { mode, inventories }));
}

export function removeInventory(
  pool: Pool,
  uuid: ProviderUuid,
  resourceClass: ResourceClass | null,
): Promise<InventoryOutcome> {
  return retryConflicts(() => writeInventories(pool, uuid, undefined, { mode: "remove", resourceClass }));
}
