import { setInventoriesSchemas } from "./inventories.ts";
import {
  CONSUMER_TYPE_PATTERN,
  closedObject,
  mapOf,
  NAME_SUFFIX_PATTERN,
  ownerId,
  RESOURCE_CLASS_PATTERN,
  UUID_KEY_PATTERN,
  uuid,
} from "./patterns.ts";

const resources = mapOf(RESOURCE_CLASS_PATTERN, { type: "integer", minimum: 1 }, 1);

const asList = {
  type: "array",
  minItems: 1,
  items: closedObject({ resource_provider: closedObject({ uuid }), resources }),
};
const asMap = (minProperties: number) =>
  mapOf(UUID_KEY_PATTERN, closedObject({ generation: { type: "integer" }, resources }, ["generation"]), minProperties);

const owner = { project_id: ownerId, user_id: ownerId };
const consumer_generation = { type: ["integer", "null"] };
const mappings = {
  type: "object",
  minProperties: 1,
  patternProperties: { [`^(${NAME_SUFFIX_PATTERN})?$`]: { type: "array", minItems: 1, items: uuid } },
};
const consumer_type = { type: "string", pattern: CONSUMER_TYPE_PATTERN, minLength: 1, maxLength: 255 };

const from1_12 = closedObject({ allocations: asMap(1), ...owner });
const deletable = closedObject({ allocations: asMap(0), ...owner });
const from1_28 = closedObject({ allocations: asMap(0), ...owner, consumer_generation });
const from1_34 = closedObject({ allocations: asMap(0), ...owner, consumer_generation, mappings }, ["mappings"]);
const from1_38 = closedObject({ allocations: asMap(0), ...owner, consumer_generation, mappings, consumer_type }, [
  "mappings",
]);

/** PUT /allocations/{consumer_uuid}. */
export const putAllocationsSchemas = {
  "1.0": closedObject({ allocations: asList }),
  "1.8": closedObject({ allocations: asList, ...owner }),
  "1.12": from1_12,
  "1.28": from1_28,
  "1.34": from1_34,
  "1.38": from1_38,
};

const ofConsumers = (one: unknown, minProperties: number) => mapOf(UUID_KEY_PATTERN, one, minProperties);

/** POST /allocations. */
export const postAllocationsSchemas = {
  "1.13": ofConsumers(deletable, 1),
  "1.28": ofConsumers(from1_28, 1),
  "1.34": ofConsumers(from1_34, 1),
  "1.38": ofConsumers(from1_38, 1),
};

const reshape = (allocations: unknown) =>
  closedObject({ inventories: mapOf(UUID_KEY_PATTERN, setInventoriesSchemas["1.0"], 1), allocations });

/** POST /reshaper. */
export const postReshaperSchemas = {
  "1.30": reshape(ofConsumers(from1_28, 0)),
  "1.34": reshape(ofConsumers(from1_34, 0)),
  "1.38": reshape(ofConsumers(from1_38, 0)),
};
