import { postAllocationsSchemas, postReshaperSchemas, putAllocationsSchemas } from "../schemas/allocations.ts";
import { listCandidatesSchemas } from "../schemas/candidates.ts";
import { createInventorySchemas, setInventoriesSchemas, updateInventorySchemas } from "../schemas/inventories.ts";
import {
  listTraitsSchemas,
  resourceClassSchemas,
  setAggregatesSchemas,
  setTraitsSchemas,
  usagesSchemas,
} from "../schemas/names.ts";
import { createProviderSchemas, listProvidersSchemas, updateProviderSchemas } from "../schemas/providers.ts";
import type { VersionedSchemas } from "../validate.ts";
import type { AnswerName } from "./answers.ts";

/** Details of one verb of one path that the route itself does not have. */
export interface OpenapiOperation {
  /** The operation's id, which is also the name of the body's schema. */
  readonly id: string;
  readonly summary: string;
  readonly body?: VersionedSchemas;
  /** The last version whose route takes the body. */
  readonly bodyUntil?: number;
  readonly query?: VersionedSchemas;
  /** Good answers by status: the schema of the body, or null for none. */
  readonly good: Readonly<Record<number, AnswerName | null>>;
  /** Statuses of refusals beyond those that every route has. */
  readonly refusals?: readonly number[];
}

const NONE = { 204: null } as const;

/** By verb and path, as in the table of routes. */
export const OPENAPI_OPERATIONS: Readonly<Record<string, OpenapiOperation>> = {
  "GET /": { id: "showVersions", summary: "The versions of the API; needs no token", good: { 200: "Versions" } },

  "GET /resource_providers": {
    id: "listProviders",
    summary: "List providers",
    query: listProvidersSchemas,
    good: { 200: "Providers" },
  },
  "POST /resource_providers": {
    id: "createProvider",
    summary: "Create a provider; from 1.20 on it is in the answer",
    body: createProviderSchemas,
    good: { 200: "Provider", 201: null },
    refusals: [409],
  },
  "GET /resource_providers/{uuid}": { id: "showProvider", summary: "Show a provider", good: { 200: "Provider" } },
  "PUT /resource_providers/{uuid}": {
    id: "updateProvider",
    summary: "Rename a provider, or move it to another parent",
    body: updateProviderSchemas,
    good: { 200: "Provider" },
    refusals: [409],
  },
  "DELETE /resource_providers/{uuid}": {
    id: "deleteProvider",
    summary: "Remove a provider that has no allocations and no children",
    good: NONE,
    refusals: [409],
  },

  "GET /resource_providers/{uuid}/inventories": {
    id: "listInventories",
    summary: "List a provider's inventories",
    good: { 200: "Inventories" },
  },
  "POST /resource_providers/{uuid}/inventories": {
    id: "createInventory",
    summary: "Add one inventory",
    body: createInventorySchemas,
    good: { 201: "Inventory" },
    refusals: [409],
  },
  "PUT /resource_providers/{uuid}/inventories": {
    id: "setInventories",
    summary: "Replace all inventories",
    body: setInventoriesSchemas,
    good: { 200: "Inventories" },
    refusals: [409],
  },
  "DELETE /resource_providers/{uuid}/inventories": {
    id: "deleteInventories",
    summary: "Remove all inventories; from 1.5 on",
    good: NONE,
    refusals: [409],
  },
  "GET /resource_providers/{uuid}/inventories/{resource_class}": {
    id: "showInventory",
    summary: "Show one inventory",
    good: { 200: "Inventory" },
  },
  "PUT /resource_providers/{uuid}/inventories/{resource_class}": {
    id: "updateInventory",
    summary: "Change one inventory",
    body: updateInventorySchemas,
    good: { 200: "Inventory" },
    refusals: [409],
  },
  "DELETE /resource_providers/{uuid}/inventories/{resource_class}": {
    id: "deleteInventory",
    summary: "Remove one inventory",
    good: NONE,
    refusals: [409],
  },

  "GET /resource_providers/{uuid}/usages": {
    id: "showProviderUsages",
    summary: "What is used of a provider's inventories",
    good: { 200: "ProviderUsages" },
  },
  "GET /resource_providers/{uuid}/aggregates": {
    id: "listAggregates",
    summary: "List a provider's aggregates",
    good: { 200: "Aggregates" },
  },
  "PUT /resource_providers/{uuid}/aggregates": {
    id: "setAggregates",
    summary: "Replace a provider's aggregates",
    body: setAggregatesSchemas,
    good: { 200: "Aggregates" },
    refusals: [409],
  },
  "GET /resource_providers/{uuid}/allocations": {
    id: "listProviderAllocations",
    summary: "List the allocations against a provider",
    good: { 200: "ProviderAllocations" },
  },
  "GET /resource_providers/{uuid}/traits": {
    id: "listProviderTraits",
    summary: "List a provider's traits",
    good: { 200: "ProviderTraits" },
  },
  "PUT /resource_providers/{uuid}/traits": {
    id: "setProviderTraits",
    summary: "Replace a provider's traits",
    body: setTraitsSchemas,
    good: { 200: "ProviderTraits" },
    refusals: [409],
  },
  "DELETE /resource_providers/{uuid}/traits": {
    id: "deleteProviderTraits",
    summary: "Remove all of a provider's traits",
    good: NONE,
    refusals: [409],
  },

  "GET /resource_classes": { id: "listClasses", summary: "List resource classes", good: { 200: "ResourceClasses" } },
  "POST /resource_classes": {
    id: "createClass",
    summary: "Create a custom resource class",
    body: resourceClassSchemas,
    good: { 201: null },
    refusals: [409],
  },
  "GET /resource_classes/{name}": {
    id: "showClass",
    summary: "Show a resource class",
    good: { 200: "ResourceClass" },
  },
  "PUT /resource_classes/{name}": {
    id: "putClass",
    summary: "Until 1.6 rename a custom resource class; from 1.7 on make sure that it exists, without a body",
    body: resourceClassSchemas,
    bodyUntil: 6,
    good: { 200: "ResourceClass", 201: null, 204: null },
    refusals: [409],
  },
  "DELETE /resource_classes/{name}": {
    id: "deleteClass",
    summary: "Remove a custom resource class",
    good: NONE,
    refusals: [409],
  },

  "GET /traits": { id: "listTraits", summary: "List traits", query: listTraitsSchemas, good: { 200: "Traits" } },
  "GET /traits/{name}": { id: "showTrait", summary: "Whether a trait exists", good: NONE },
  "PUT /traits/{name}": {
    id: "putTrait",
    summary: "Make sure that a custom trait exists",
    good: { 201: null, 204: null },
  },
  "DELETE /traits/{name}": {
    id: "deleteTrait",
    summary: "Remove a custom trait",
    good: NONE,
    refusals: [409],
  },

  "POST /allocations": {
    id: "postAllocations",
    summary: "Set the allocations of several consumers in one step",
    body: postAllocationsSchemas,
    good: NONE,
    refusals: [409],
  },
  "GET /allocations/{consumer_uuid}": {
    id: "showAllocations",
    summary: "List a consumer's allocations; none for a consumer that is not known",
    good: { 200: "ConsumerAllocations" },
  },
  "PUT /allocations/{consumer_uuid}": {
    id: "putAllocations",
    summary: "Set a consumer's allocations",
    body: putAllocationsSchemas,
    good: NONE,
    refusals: [409],
  },
  "DELETE /allocations/{consumer_uuid}": {
    id: "deleteAllocations",
    summary: "Remove a consumer with all its allocations",
    good: NONE,
  },

  "GET /allocation_candidates": {
    id: "listCandidates",
    summary: "Find where a request fits",
    query: listCandidatesSchemas,
    good: { 200: "Candidates" },
  },
  "GET /usages": { id: "showUsages", summary: "What a project uses", query: usagesSchemas, good: { 200: "Usages" } },
  "POST /reshaper": {
    id: "reshape",
    summary: "Move inventories and the allocations against them in one step",
    body: postReshaperSchemas,
    good: NONE,
    refusals: [409],
  },
};
