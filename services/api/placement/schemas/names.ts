import { CONSUMER_TYPE_FILTER_PATTERN, CUSTOM_NAME_PATTERN, closedObject, ownerId, uuid } from "./patterns.ts";

const customName = { type: "string", minLength: 1, maxLength: 255, pattern: CUSTOM_NAME_PATTERN };
const generation = { type: "integer" };

/** POST /resource_classes; PUT /resource_classes/{name}, from 1.7 on of the name in the path. */
export const resourceClassSchemas = { "1.2": closedObject({ name: customName }) };

/** The name in the path of PUT /traits/{name}. */
export const customNameInPathSchemas = { "1.0": customName };

/** PUT /resource_providers/{uuid}/traits. */
export const setTraitsSchemas = {
  "1.6": closedObject({
    traits: { type: "array", items: { type: "string", minLength: 1, maxLength: 255 } },
    resource_provider_generation: generation,
  }),
};

/** Query string of GET /traits. */
export const listTraitsSchemas = {
  "1.6": closedObject({ name: { type: "string" }, associated: { type: "string" } }, ["name", "associated"]),
};

const aggregates = { type: "array", items: uuid, uniqueItems: true };

/** PUT /resource_providers/{uuid}/aggregates. */
export const setAggregatesSchemas = {
  "1.1": aggregates,
  "1.19": closedObject({ aggregates, resource_provider_generation: generation }),
};

/** Query string of GET /usages. */
export const usagesSchemas = {
  "1.9": closedObject({ project_id: ownerId, user_id: ownerId }, ["user_id"]),
  "1.38": closedObject(
    {
      project_id: ownerId,
      user_id: ownerId,
      consumer_type: { type: "string", minLength: 1, maxLength: 255, pattern: CONSUMER_TYPE_FILTER_PATTERN },
    },
    ["user_id", "consumer_type"],
  ),
};
