import { closedObject, MAX_FLOAT, MAX_INT, RESOURCE_CLASS_PATTERN } from "./patterns.ts";

const generation = { type: "integer" };
const unit = { type: "integer", minimum: 1, maximum: MAX_INT };
const record = {
  total: unit,
  reserved: { type: "integer", minimum: 0, maximum: MAX_INT },
  min_unit: unit,
  max_unit: unit,
  step_size: unit,
  // Upstream's schema has no minimum, but its database refuses smaller values.
  allocation_ratio: { type: "number", minimum: -MAX_FLOAT, maximum: MAX_FLOAT },
};
const withDefaults = ["reserved", "min_unit", "max_unit", "step_size", "allocation_ratio"];

/** The values for fields of an inventory that the client omits. */
export const INVENTORY_DEFAULTS = {
  reserved: 0,
  min_unit: 1,
  max_unit: MAX_INT,
  step_size: 1,
  allocation_ratio: 1,
} as const;

/** POST /resource_providers/{uuid}/inventories. */
export const createInventorySchemas = {
  "1.0": closedObject(
    {
      ...record,
      resource_provider_generation: generation,
      resource_class: { type: "string", pattern: RESOURCE_CLASS_PATTERN },
    },
    [...withDefaults, "resource_provider_generation"],
  ),
};

/** PUT /resource_providers/{uuid}/inventories/{resource_class}. */
export const updateInventorySchemas = {
  "1.0": closedObject({ ...record, resource_provider_generation: generation }, withDefaults),
};

/** PUT /resource_providers/{uuid}/inventories; also one provider's part of a reshape. */
export const setInventoriesSchemas = {
  "1.0": closedObject({
    resource_provider_generation: generation,
    inventories: {
      type: "object",
      patternProperties: {
        [RESOURCE_CLASS_PATTERN]: closedObject({ ...record, resource_provider_generation: generation }, [
          ...withDefaults,
          "resource_provider_generation",
        ]),
      },
      additionalProperties: false,
    },
  }),
};
