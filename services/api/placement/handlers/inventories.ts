import { type ProviderUuid, type ResourceClass, resourceClass } from "../../../../core/ledger/ids.ts";
import type { Inventory } from "../../../../core/ledger/model.ts";
import type { InventoryOutcome, PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import { type Answer, json, noContent, type PlacementCall } from "../http.ts";
import {
  ERROR_CODES,
  PlacementError,
  placementBadRequest,
  placementConflict,
  placementNotFound,
} from "../placement-error.ts";
import {
  createInventorySchemas as createSchema,
  INVENTORY_DEFAULTS,
  setInventoriesSchemas as setSchema,
  updateInventorySchemas as updateSchema,
} from "../schemas/inventories.ts";
import { readBody } from "../validate.ts";
import { noSuchProvider, orNotFound, providerInPath } from "./providers.ts";

/** An inventory in JSON, as clients write it. */
export interface InventoryBody {
  readonly total: number;
  readonly reserved?: number;
  readonly min_unit?: number;
  readonly max_unit?: number;
  readonly step_size?: number;
  readonly allocation_ratio?: number;
}

export function inventoryFrom(body: InventoryBody): Inventory {
  const full = { ...INVENTORY_DEFAULTS, ...body };
  return {
    total: full.total,
    reserved: full.reserved,
    minUnit: full.min_unit,
    maxUnit: full.max_unit,
    stepSize: full.step_size,
    allocationRatio: full.allocation_ratio,
  };
}

const present = (inventory: Inventory) => ({
  total: inventory.total,
  reserved: inventory.reserved,
  min_unit: inventory.minUnit,
  max_unit: inventory.maxUnit,
  step_size: inventory.stepSize,
  allocation_ratio: inventory.allocationRatio,
});

function presentAll(generation: number, inventories: ReadonlyMap<ResourceClass, Inventory>, newestMs: number): Answer {
  const body = Object.fromEntries([...inventories].map(([name, inventory]) => [name, present(inventory)]));
  return json({ resource_provider_generation: generation, inventories: body }, newestMs);
}

/** Until 1.25 some capacity must be left to allocate; from 1.26 on all of it may be reserved. Throws 400. */
function requireCapacity(
  call: PlacementCall,
  provider: ProviderUuid,
  name: ResourceClass,
  inventory: Inventory,
  action: string,
): void {
  const capacity = Math.trunc((inventory.total - inventory.reserved) * inventory.allocationRatio);
  const wrong = call.version.has(26) ? capacity < 0 : capacity <= 0;
  if (!wrong) return;
  const why = call.version.has(26)
    ? "The reserved value is greater than total."
    : "The reserved value is greater than or equal to total.";
  throw placementBadRequest(
    `Unable to ${action} inventory for resource provider ${provider}: Invalid inventory for '${name}' on resource provider '${provider}'. ${why}`,
  );
}

/**
 * Runs a check of an inventory's values, which may throw. As upstream, an unknown provider and a stale generation are reported before
 * invalid values.
 */
async function orStale<Read>(
  store: PlacementStore,
  uuid: ProviderUuid,
  expected: number,
  read: () => Read,
): Promise<Read> {
  try {
    return read();
  } catch (error) {
    const provider = await store.provider(uuid);
    if (provider === null) throw noSuchProvider(uuid);
    if (provider.generation !== expected)
      throw refusal(uuid, { kind: "generation-conflict", actual: provider.generation });
    throw error;
  }
}

/** Returns the refusal that upstream would answer. A `written` outcome is never passed here. */
function refusal(provider: ProviderUuid, outcome: Exclude<InventoryOutcome, { kind: "written" }>): PlacementError {
  switch (outcome.kind) {
    case "not-found":
      return noSuchProvider(provider);
    case "generation-conflict":
      return placementConflict("resource provider generation conflict", ERROR_CODES.concurrentUpdate);
    case "in-use":
      return placementConflict(
        `update conflict: Inventory for '${outcome.resourceClasses.join(", ")}' on resource provider '${provider}' in use.`,
        ERROR_CODES.inventoryInUse,
      );
    case "unknown-class":
      return placementBadRequest(
        `Unknown resource class in inventory for resource provider ${provider}: No such resource class ${outcome.resourceClass}.`,
      );
    case "exists":
      return placementConflict(
        `Update conflict: inventory of class ${outcome.resourceClass} exists already.`,
        ERROR_CODES.concurrentUpdate,
      );
    case "no-inventory":
      return placementBadRequest(
        `No inventory record with resource class for resource provider ${provider}: No inventory of class ${outcome.resourceClass} found.`,
      );
    default:
      return outcome satisfies never;
  }
}

/** GET /resource_providers/{uuid}/inventories */
export async function listInventories(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const found = await store.inventories(uuid);
  if (found === null) throw noSuchProvider(uuid);
  const newest = Math.max(0, ...found.value.values().map((inventory) => inventory.updatedAtMs));
  return presentAll(found.generation, found.value, newest || Date.now());
}

/** GET /resource_providers/{uuid}/inventories/{resource_class} */
export async function showInventory(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const name = resourceClass(call.params["resource_class"] ?? "");
  const found = await store.inventories(uuid);
  if (found === null) throw noSuchProvider(uuid);
  const inventory = found.value.get(name);
  if (inventory === undefined) throw placementNotFound(`No inventory of class ${name} for ${uuid}`);
  return json({ ...present(inventory), resource_provider_generation: found.generation }, inventory.updatedAtMs);
}

type Written = Extract<InventoryOutcome, { kind: "written" }>;
function presentOne(inventory: Inventory, { generation, updatedAtMs }: Written, status: number): Answer {
  return json({ ...present(inventory), resource_provider_generation: generation }, updatedAtMs, status);
}

/** POST /resource_providers/{uuid}/inventories */
export async function createInventory(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const { name, inventory } = await orNotFound(store, uuid, () => {
    const body = readBody<InventoryBody & { resource_class: string }>(call, createSchema);
    const read = { name: resourceClass(body.resource_class), inventory: inventoryFrom(body) };
    requireCapacity(call, uuid, read.name, read.inventory, "create");
    return read;
  });
  const outcome = await store.putInventory(uuid, undefined, name, inventory, "create");
  if (outcome.kind !== "written") throw refusal(uuid, outcome);
  const location = `${call.request.mount}/resource_providers/${uuid}/inventories/${name}`;
  return { ...presentOne(inventory, outcome, 201), location };
}

/** PUT /resource_providers/{uuid}/inventories/{resource_class} */
export async function updateInventory(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const name = resourceClass(call.params["resource_class"] ?? "");
  const body = await orNotFound(store, uuid, () =>
    readBody<InventoryBody & { resource_provider_generation: number }>(call, updateSchema),
  );
  const expected = body.resource_provider_generation;
  const inventory = inventoryFrom(body);
  await orStale(store, uuid, expected, () => requireCapacity(call, uuid, name, inventory, "update"));
  const outcome = await store.putInventory(uuid, expected, name, inventory, "update");
  // Upstream looks the class up outside of what it answers with 400.
  if (outcome.kind === "unknown-class") throw placementNotFound(`No such resource class ${outcome.resourceClass}.`);
  if (outcome.kind !== "written") throw refusal(uuid, outcome);
  return presentOne(inventory, outcome, 200);
}

/** PUT /resource_providers/{uuid}/inventories */
export async function setInventories(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const body = await orNotFound(store, uuid, () =>
    readBody<{ resource_provider_generation: number; inventories: Record<string, InventoryBody> }>(call, setSchema),
  );
  const expected = body.resource_provider_generation;
  const inventories = new Map(
    Object.entries(body.inventories).map(([name, one]) => [resourceClass(name), inventoryFrom(one)]),
  );
  await orStale(store, uuid, expected, () => {
    for (const [name, inventory] of inventories) requireCapacity(call, uuid, name, inventory, "update");
  });
  const outcome = await store.setInventories(uuid, expected, inventories);
  if (outcome.kind !== "written") throw refusal(uuid, outcome);
  return presentAll(outcome.generation, inventories, outcome.updatedAtMs);
}

/** DELETE /resource_providers/{uuid}/inventories (from 1.5; a 405 before) */
export async function deleteInventories(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  if (!call.version.has(5)) throw new PlacementError(405, "The method specified is not allowed for this resource.");
  const uuid = providerInPath(call);
  const outcome = await store.deleteInventory(uuid, null);
  if (outcome.kind === "in-use") {
    throw placementConflict(
      `Inventory for '${outcome.resourceClasses.join(", ")}' on resource provider '${uuid}' in use.`,
      ERROR_CODES.inventoryInUse,
    );
  }
  if (outcome.kind !== "written") throw refusal(uuid, outcome);
  return noContent;
}

/** DELETE /resource_providers/{uuid}/inventories/{resource_class} */
export async function deleteInventory(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const name = resourceClass(call.params["resource_class"] ?? "");
  const outcome = await store.deleteInventory(uuid, name);
  switch (outcome.kind) {
    case "written":
      return noContent;
    case "no-inventory":
      throw placementNotFound(
        `No inventory of class ${name} found for delete: No inventory of class ${name} found for delete`,
      );
    case "in-use":
      throw placementConflict(
        `Unable to delete inventory of class ${name}: Inventory for '${name}' on resource provider '${uuid}' in use.`,
        ERROR_CODES.concurrentUpdate,
      );
    default:
      throw refusal(uuid, outcome);
  }
}
