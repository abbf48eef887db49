import { closedObject, uuid } from "./patterns.ts";

const name = { type: "string", minLength: 1, maxLength: 200 };
const parent = { anyOf: [uuid, { type: "null" }] };

/** POST /resource_providers. */
export const createProviderSchemas = {
  "1.0": closedObject({ name, uuid }, ["uuid"]),
  "1.14": closedObject({ name, uuid, parent_provider_uuid: parent }, ["uuid", "parent_provider_uuid"]),
};

/** PUT /resource_providers/{uuid}. */
export const updateProviderSchemas = {
  "1.0": closedObject({ name }),
  "1.14": closedObject({ name, parent_provider_uuid: parent }, ["parent_provider_uuid"]),
};

const text = { type: "string" };
const optional = (properties: Readonly<Record<string, unknown>>) => closedObject(properties, Object.keys(properties));

/** Query string of GET /resource_providers. */
export const listProvidersSchemas = {
  "1.0": optional({ name: text, uuid }),
  "1.3": optional({ name: text, uuid, member_of: text }),
  "1.4": optional({ name: text, uuid, member_of: text, resources: text }),
  "1.14": optional({ name: text, uuid, member_of: text, resources: text, in_tree: uuid }),
  "1.18": optional({ name: text, uuid, member_of: text, resources: text, in_tree: uuid, required: text }),
};
