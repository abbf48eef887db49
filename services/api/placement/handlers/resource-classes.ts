import { type ResourceClass, resourceClass } from "../../../../core/ledger/ids.ts";
import type { NameRow, PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import { type Answer, json, noContent, type PlacementCall } from "../http.ts";
import { placementBadRequest, placementConflict, placementNotFound } from "../placement-error.ts";
import { resourceClassSchemas as bodySchema } from "../schemas/names.ts";
import { readBody } from "../validate.ts";

const nameInPath = (call: PlacementCall): ResourceClass => resourceClass(call.params["name"] ?? "");
const url = (call: PlacementCall, name: string): string => `${call.request.mount}/resource_classes/${name}`;
const present = (call: PlacementCall, name: string): unknown => ({
  name,
  links: [{ rel: "self", href: url(call, name) }],
});
const isStandard = (name: string): boolean => !name.startsWith("CUSTOM_");

async function requireClass(call: PlacementCall, store: PlacementStore): Promise<NameRow<ResourceClass>> {
  const name = nameInPath(call);
  const row = (await store.resourceClasses()).find((one) => one.name === name);
  if (row === undefined) throw placementNotFound(`No such resource class ${name}.`);
  return row;
}

/** GET /resource_classes */
export async function listClasses(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const rows = await store.resourceClasses();
  const newest = rows.reduce((latest, row) => Math.max(latest, row.updatedAtMs), 0);
  return json({ resource_classes: rows.map((row) => present(call, row.name)) }, newest);
}

/** POST /resource_classes */
export async function createClass(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const { name } = readBody<{ name: string }>(call, bodySchema);
  const outcome = await store.createResourceClass(resourceClass(name));
  if (outcome === "exists") throw placementConflict(`Conflicting resource class already exists: ${name}`);
  return { status: 201, location: url(call, name), lastModifiedMs: null };
}

/** GET /resource_classes/{name} */
export async function showClass(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const row = await requireClass(call, store);
  return json(present(call, row.name), row.updatedAtMs);
}

/** PUT /resource_classes/{name} until 1.6: rename. */
export async function renameClass(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const body = readBody<{ name: string }>(call, bodySchema);
  const { name } = await requireClass(call, store);
  if (isStandard(name)) throw placementBadRequest(`Cannot update standard resource class ${name}`);
  const outcome = await store.renameResourceClass(name, resourceClass(body.name));
  if (outcome === "exists") throw placementConflict(`Resource class already exists: ${body.name}`);
  if (outcome === "not-found") throw placementNotFound(`No such resource class ${name}.`);
  return { status: 200, json: present(call, body.name), lastModifiedMs: null };
}

/** PUT /resource_classes/{name} from 1.7: make sure that it exists. */
export async function ensureClass(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const name = nameInPath(call);
  readBody({ json: { name }, version: call.version }, bodySchema);
  const outcome = await store.createResourceClass(name);
  return { status: outcome === "created" ? 201 : 204, location: url(call, name), lastModifiedMs: null };
}

/** DELETE /resource_classes/{name} */
export async function deleteClass(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const { name } = await requireClass(call, store);
  if (isStandard(name))
    throw placementBadRequest(`Error in delete resource class: Cannot delete standard resource class ${name}.`);
  const outcome = await store.deleteResourceClass(name);
  if (outcome === "not-found") throw placementNotFound(`No such resource class ${name}.`);
  if (outcome === "in-use") {
    throw placementConflict(
      `Error in delete resource class: Cannot delete resource class ${name}. Class is in use in inventory.`,
    );
  }
  return noContent;
}
