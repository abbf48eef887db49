import { closedObject, MAX_INT, mapOf, RESOURCE_CLASS_PATTERN, UUID_KEY_PATTERN, uuid } from "../schemas/patterns.ts";

// Answers of the API at its newest version. Fields that older versions leave out are optional, so that an answer of any version matches the
// schema.

const text = { type: "string" };
const count = { type: "integer", minimum: 0 };
const generation = { type: "integer", minimum: 0 };
const amounts = mapOf(RESOURCE_CLASS_PATTERN, count);
const uuidOrNull = { type: ["string", "null"], format: "uuid" };
const names = { type: "array", items: text };
const links = { type: "array", items: closedObject({ rel: text, href: text }) };

const provider = closedObject(
  { uuid, name: text, generation, links, parent_provider_uuid: uuidOrNull, root_provider_uuid: uuid },
  ["parent_provider_uuid", "root_provider_uuid"],
);
const inventory = closedObject({
  total: { type: "integer", minimum: 1, maximum: MAX_INT },
  reserved: count,
  min_unit: count,
  max_unit: count,
  step_size: count,
  allocation_ratio: { type: "number" },
});
const resourceClass = closedObject({ name: text, links });
const withResources = (more: Readonly<Record<string, unknown>>, optional: readonly string[] = []) =>
  closedObject({ resources: amounts, ...more }, optional);

const candidateAsMap = closedObject(
  {
    allocations: mapOf(UUID_KEY_PATTERN, withResources({})),
    mappings: { type: "object", additionalProperties: { type: "array", items: uuid } },
  },
  ["mappings"],
);
const candidateAsList = closedObject({
  allocations: { type: "array", items: withResources({ resource_provider: closedObject({ uuid }) }) },
});
const summary = closedObject(
  {
    resources: mapOf(RESOURCE_CLASS_PATTERN, closedObject({ capacity: { type: "integer" }, used: count })),
    traits: names,
    parent_provider_uuid: uuidOrNull,
    root_provider_uuid: uuid,
  },
  ["traits", "parent_provider_uuid", "root_provider_uuid"],
);

/** Schemas of the bodies of good answers, by the name they have in the document. */
export const ANSWERS = {
  Versions: closedObject({
    versions: {
      type: "array",
      items: closedObject({ id: text, max_version: text, min_version: text, status: text, links }),
    },
  }),
  Provider: provider,
  Providers: closedObject({ resource_providers: { type: "array", items: provider } }),
  Inventory: {
    ...inventory,
    properties: { ...inventory.properties, resource_provider_generation: generation },
    required: [...inventory.required, "resource_provider_generation"],
  },
  Inventories: closedObject({
    resource_provider_generation: generation,
    inventories: mapOf(RESOURCE_CLASS_PATTERN, inventory),
  }),
  ProviderUsages: closedObject({ resource_provider_generation: generation, usages: amounts }),
  Aggregates: closedObject({ aggregates: { type: "array", items: uuid }, resource_provider_generation: generation }, [
    "resource_provider_generation",
  ]),
  ProviderTraits: closedObject({ traits: names, resource_provider_generation: generation }),
  ProviderAllocations: closedObject({
    resource_provider_generation: generation,
    allocations: mapOf(UUID_KEY_PATTERN, withResources({ consumer_generation: generation }, ["consumer_generation"])),
  }),
  ConsumerAllocations: closedObject(
    {
      allocations: mapOf(UUID_KEY_PATTERN, withResources({ generation })),
      project_id: text,
      user_id: text,
      consumer_generation: generation,
      consumer_type: text,
    },
    ["project_id", "user_id", "consumer_generation", "consumer_type"],
  ),
  ResourceClass: resourceClass,
  ResourceClasses: closedObject({ resource_classes: { type: "array", items: resourceClass } }),
  Traits: closedObject({ traits: names }),
  Candidates: closedObject({
    allocation_requests: { type: "array", items: { anyOf: [candidateAsMap, candidateAsList] } },
    provider_summaries: mapOf(UUID_KEY_PATTERN, summary),
  }),
  Usages: closedObject({
    usages: {
      anyOf: [
        { ...amounts, description: "Before 1.38: by resource class." },
        { type: "object", additionalProperties: { ...amounts, ...countedAmounts() } },
      ],
      description: "From 1.38 on by consumer type, then by resource class.",
    },
  }),
  Errors: closedObject({
    errors: {
      type: "array",
      items: {
        type: "object",
        properties: { status: { type: "integer" }, title: text, detail: text, code: text, request_id: text },
        required: ["status", "title", "detail", "request_id"],
      },
    },
  }),
} as const;

/** The schema of amounts that have the number of consumers beside them. */
function countedAmounts() {
  return { properties: { consumer_count: count }, required: ["consumer_count"] };
}

export type AnswerName = keyof typeof ANSWERS;
