import { randomUUID } from "node:crypto";
import { type ProviderUuid, providerUuid } from "../../../../core/ledger/ids.ts";
import type { PlacementStore, ProviderFilter, ProviderRow } from "../../../../core/stores/cell/placement-store.ts";
import { type Answer, json, noContent, type PlacementCall } from "../http.ts";
import { ERROR_CODES, placementBadRequest, placementConflict, placementNotFound } from "../placement-error.ts";
import { aggregateRules, inTree, parseResources, traitRules } from "../query-values.ts";
import {
  createProviderSchemas as createSchema,
  listProvidersSchemas as listSchema,
  updateProviderSchemas as updateSchema,
} from "../schemas/providers.ts";
import { readUuidLike } from "../uuids.ts";
import { checkQuery, readBody } from "../validate.ts";
import { requireKnownClasses, requireKnownTraits } from "./known-names.ts";

/** The provider's UUID in the path; 404 if it is not a UUID. */
export function providerInPath(call: PlacementCall): ProviderUuid {
  const text = call.params["uuid"] ?? "";
  const uuid = readUuidLike(text);
  if (uuid === null) throw noSuchProvider(text);
  return providerUuid(uuid);
}

/** Runs a check of the body that may throw. As upstream, an unknown provider is reported before errors of the body. */
export async function orNotFound<Read>(store: PlacementStore, uuid: ProviderUuid, read: () => Read): Promise<Read> {
  try {
    return read();
  } catch (error) {
    if ((await store.provider(uuid)) === null) throw noSuchProvider(uuid);
    throw error;
  }
}

export const noSuchProvider = (uuid: string) => placementNotFound(`No resource provider with uuid ${uuid} found`);

const LINKS: readonly (readonly [rel: string, fromMinor: number])[] = [
  ["inventories", 0],
  ["usages", 0],
  ["aggregates", 1],
  ["traits", 6],
  ["allocations", 11],
];

function present(call: PlacementCall, provider: ProviderRow): unknown {
  const url = `${call.request.mount}/resource_providers/${provider.uuid}`;
  const links = LINKS.filter(([, from]) => call.version.has(from)).map(([rel]) => ({ rel, href: `${url}/${rel}` }));
  return {
    uuid: provider.uuid,
    name: provider.name,
    generation: provider.generation,
    links: [{ rel: "self", href: url }, ...links],
    ...(call.version.has(14) ? { parent_provider_uuid: provider.parent, root_provider_uuid: provider.root } : {}),
  };
}

/** GET /resource_providers */
export async function listProviders(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  checkQuery(call, listSchema);
  const filter = await filterFrom(call, store);
  const providers = await store.providers(filter);
  const newest = providers.reduce((latest, provider) => Math.max(latest, provider.updatedAtMs), 0);
  return json({ resource_providers: providers.map((provider) => present(call, provider)) }, newest || Date.now());
}

async function filterFrom(call: PlacementCall, store: PlacementStore): Promise<ProviderFilter> {
  const query = call.query;
  const last = (key: string): string | undefined => query.getAll(key).at(-1);
  const aggregates = query.has("member_of") ? aggregateRules(call) : { memberOf: [], forbidden: [] };
  const traits = query.has("required") ? traitRules(call) : { required: [], forbidden: [] };
  const resources = last("resources") === undefined ? undefined : parseResources(last("resources")!);
  await requireKnownTraits(
    store,
    [...traits.required.flat(), ...traits.forbidden],
    'Invalid trait(s) in "required" parameter: ',
  );
  if (resources) await requireKnownClasses(store, [...resources.keys()]);
  const [name, uuid, tree] = [last("name"), last("uuid"), inTree(call)];
  return {
    memberOf: aggregates.memberOf,
    forbiddenAggregates: aggregates.forbidden,
    requiredTraits: traits.required,
    forbiddenTraits: traits.forbidden,
    ...(name ? { name } : {}),
    ...(uuid ? { uuids: [providerUuid(readUuidLike(uuid)!)] } : {}),
    ...(tree ? { inTree: tree } : {}),
    ...(resources ? { resources } : {}),
  };
}

interface ProviderBody {
  readonly name: string;
  readonly uuid?: string;
  readonly parent_provider_uuid?: string | null;
}
const asProvider = (text: string | null): ProviderUuid | null =>
  text === null ? null : providerUuid(readUuidLike(text)!);

/** POST /resource_providers */
export async function createProvider(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const body = readBody<ProviderBody>(call, createSchema);
  const uuid = providerUuid(body.uuid ? readUuidLike(body.uuid)! : randomUUID());
  const home = call.request.headers["x-berth-cell"];
  const provider = { uuid, name: body.name, parent: asProvider(body.parent_provider_uuid ?? null) };
  const outcome = await store.createProvider(provider, home);
  const refused = (why: string) =>
    placementBadRequest(
      `Unable to create resource provider "${body.name}", ${uuid}: Object action create failed because: ${why}`,
    );
  switch (outcome.kind) {
    case "uuid-taken":
      throw placementConflict(`Conflicting resource provider uuid: ${uuid} already exists.`, ERROR_CODES.duplicateName);
    case "name-taken":
      throw placementConflict(
        `Conflicting resource provider name: ${body.name} already exists.`,
        ERROR_CODES.duplicateName,
      );
    case "unknown-cell":
      throw placementBadRequest(`x-berth-cell names cell ${outcome.cell}; there are ${outcome.known.join(", ")}`);
    case "own-parent":
      throw refused(
        "parent provider UUID cannot be same as UUID. Please set parent provider UUID to None if there is no parent.",
      );
    case "unknown-parent":
      throw refused("parent provider UUID does not exist.");
    case "created": {
      const location = `${call.request.mount}/resource_providers/${uuid}`;
      if (!call.version.has(20)) return { status: 201, location, lastModifiedMs: null };
      return { ...json(present(call, outcome.provider), outcome.provider.updatedAtMs), location };
    }
    default:
      return outcome satisfies never;
  }
}

/** GET /resource_providers/{uuid} */
export async function showProvider(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const provider = await store.provider(uuid);
  if (provider === null) throw noSuchProvider(uuid);
  return json(present(call, provider), provider.updatedAtMs);
}

const UPDATE_REFUSALS = {
  "unknown-parent": "parent provider UUID does not exist.",
  "reparent-refused": "re-parenting a provider is not currently allowed.",
  "unparent-refused": "un-parenting a provider is not currently allowed.",
  loop: "creating loop in the provider tree is not allowed.",
  "parent-elsewhere": "the parent provider is in another cell; a provider tree is in one cell.",
} as const;

/** PUT /resource_providers/{uuid} */
export async function updateProvider(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  if ((await store.provider(uuid)) === null) throw noSuchProvider(uuid);
  const body = readBody<ProviderBody>(call, updateSchema);
  const outcome = await store.updateProvider(uuid, {
    name: body.name,
    reparent: call.version.has(37),
    ...(body.parent_provider_uuid === undefined ? {} : { parent: asProvider(body.parent_provider_uuid) }),
  });
  switch (outcome.kind) {
    case "updated":
      return json(present(call, outcome.provider), outcome.provider.updatedAtMs);
    case "not-found":
      throw noSuchProvider(uuid);
    case "name-taken":
      throw placementConflict(`Conflicting resource provider ${body.name} already exists.`, ERROR_CODES.duplicateName);
    default:
      throw placementBadRequest(
        `Unable to save resource provider ${uuid}: Object action update failed because: ${UPDATE_REFUSALS[outcome.kind]}`,
      );
  }
}

/** DELETE /resource_providers/{uuid} */
export async function deleteProvider(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const outcome = await store.deleteProvider(uuid);
  switch (outcome) {
    case "deleted":
      return noContent;
    case "not-found":
      throw placementNotFound(`No resource provider with uuid ${uuid} found for delete`);
    case "has-allocations":
      throw placementConflict(
        `Unable to delete resource provider ${uuid}: Resource provider has allocations.`,
        ERROR_CODES.providerInUse,
      );
    case "has-children":
      throw placementConflict(
        `Unable to delete parent resource provider ${uuid}: It has child resource providers.`,
        ERROR_CODES.cannotDeleteParent,
      );
    default:
      return outcome satisfies never;
  }
}
