import { type Trait, trait } from "../../../../core/ledger/ids.ts";
import { TRAITS_MAX } from "../../../../core/ledger/model.ts";
import type { PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import { type Answer, json, noContent, type PlacementCall } from "../http.ts";
import { ERROR_CODES, placementBadRequest, placementConflict, placementNotFound } from "../placement-error.ts";
import {
  customNameInPathSchemas,
  listTraitsSchemas as listSchema,
  setTraitsSchemas as setSchema,
} from "../schemas/names.ts";
import { checkQuery, isValid, readBody } from "../validate.ts";
import { noSuchProvider, providerInPath } from "./providers.ts";

const nameInPath = (call: PlacementCall): Trait => trait(call.params["name"] ?? "");
const isStandard = (name: string): boolean => !name.startsWith("CUSTOM_");

async function findTrait(call: PlacementCall, store: PlacementStore): Promise<number | null> {
  const name = nameInPath(call);
  const row = (await store.allTraits({})).find((one) => one.name === name);
  return row?.updatedAtMs ?? null;
}

/** GET /traits */
export async function listTraits(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  checkQuery(call, listSchema);
  const associated = call.query.get("associated")?.toLowerCase();
  if (associated !== undefined && associated !== "true" && associated !== "false") {
    throw placementBadRequest('The query parameter "associated" only accepts "true" or "false"');
  }
  const matches = nameFilter(call.query.get("name"));
  const rows = await store.allTraits(associated === undefined ? {} : { associated: associated === "true" });
  const traits = rows.filter((row) => matches(row.name));
  const newest = traits.reduce((latest, row) => Math.max(latest, row.updatedAtMs), 0);
  return json({ traits: traits.map((row) => row.name) }, newest || Date.now());
}

function nameFilter(value: string | null): (name: string) => boolean {
  if (value === null) return () => true;
  const colon = value.indexOf(":");
  if (colon < 0) {
    throw placementBadRequest(
      `Badly formatted name parameter. Expected name query string parameter in form: ?name=[in|startswith]:[name1,name2|prefix]. Got: "${value}"`,
    );
  }
  const [operator, rest] = [value.slice(0, colon), value.slice(colon + 1)];
  const names = new Set(rest.split(","));
  if (operator === "in") return (name) => names.has(name);
  if (operator === "startswith") return (name) => name.startsWith(rest);
  return () => true;
}

/** PUT /traits/{name} */
export async function putTrait(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const name = nameInPath(call);
  if (!isValid(name, customNameInPathSchemas, call.version)) {
    throw placementBadRequest(
      'The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"',
    );
  }
  const outcome = await store.createTrait(name);
  const updatedAtMs = (await findTrait(call, store)) ?? Date.now();
  return {
    status: outcome === "created" ? 201 : 204,
    location: `${call.request.mount}/traits/${name}`,
    lastModifiedMs: updatedAtMs,
  };
}

/** GET /traits/{name} */
export async function showTrait(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const updatedAtMs = await findTrait(call, store);
  if (updatedAtMs === null) throw placementNotFound(`No such trait(s): ${nameInPath(call)}.`);
  return { status: 204, lastModifiedMs: updatedAtMs };
}

/** DELETE /traits/{name} */
export async function deleteTrait(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const name = nameInPath(call);
  if ((await findTrait(call, store)) === null) throw placementNotFound(`No such trait(s): ${name}.`);
  if (isStandard(name)) throw placementBadRequest(`Cannot delete standard trait ${name}.`);
  const outcome = await store.deleteTrait(name);
  if (outcome === "not-found") throw placementNotFound(`No such trait(s): ${name}.`);
  if (outcome === "in-use") throw placementConflict(`The trait ${name} is in use by a resource provider.`);
  return noContent;
}

/** GET /resource_providers/{uuid}/traits */
export async function listProviderTraits(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const found = await store.traits(uuid);
  if (found === null) throw noSuchProvider(uuid);
  return json({ traits: found.value, resource_provider_generation: found.generation }, found.updatedAtMs);
}

/** PUT /resource_providers/{uuid}/traits */
export async function setProviderTraits(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  // Unlike the other handlers, this one reads the body before the uuid in the path, as upstream does.
  const body = readBody<{ traits: string[]; resource_provider_generation: number }>(call, setSchema);
  const uuid = providerInPath(call);
  const traits = [...new Set(body.traits)].map(trait);
  if (traits.length > TRAITS_MAX) {
    throw placementBadRequest(
      `The list has ${traits.length} traits, and a resource provider may have ${TRAITS_MAX} at most: leave out those that no request names.`,
    );
  }
  const outcome = await store.setTraits(uuid, body.resource_provider_generation, traits);
  switch (outcome.kind) {
    case "written":
      return json({ traits: traits.toSorted(), resource_provider_generation: outcome.generation }, outcome.updatedAtMs);
    case "not-found":
      throw noSuchProvider(uuid);
    case "generation-conflict":
      throw placementConflict(
        "Resource provider's generation already changed. Please update the generation and try again.",
        ERROR_CODES.concurrentUpdate,
      );
    case "unknown-names":
      throw placementBadRequest(`No such trait ${outcome.names.join(", ")}`);
    default:
      return outcome satisfies never;
  }
}

/** DELETE /resource_providers/{uuid}/traits */
export async function deleteProviderTraits(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const outcome = await store.setTraits(uuid, undefined, []);
  if (outcome.kind === "not-found") throw noSuchProvider(uuid);
  return noContent;
}
