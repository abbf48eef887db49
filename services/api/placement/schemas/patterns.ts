/** Patterns that several bodies and query strings share. */
export const UUID_KEY_PATTERN = "^[0-9a-fA-F-]{36}$";
export const RESOURCE_CLASS_PATTERN = "^[A-Z0-9_]+$";
export const CUSTOM_NAME_PATTERN = "^CUSTOM_[A-Z0-9_]+$";
export const CONSUMER_TYPE_PATTERN = "^[A-Z0-9_]+$";
/** A consumer type, or one of the two special words in a filter of usages. */
export const CONSUMER_TYPE_FILTER_PATTERN = "^[A-Z0-9_]+$|^all$|^unknown$";
/** Suffix of a request group: a number, from 1.33 on a name. */
export const NUMBER_SUFFIX_PATTERN = "[1-9][0-9]*";
export const NAME_SUFFIX_PATTERN = "[a-zA-Z0-9_-]{1,64}";
/** A limit on the number of candidates. */
export const LIMIT_PATTERN = "^[1-9][0-9]*$";

/** The largest number that a column takes. */
export const MAX_INT = 2_147_483_647;
/** The largest single-precision float: upstream's bound for allocation_ratio. */
export const MAX_FLOAT = 3.40282e38;

export const uuid = { type: "string", format: "uuid" } as const;
export const ownerId = { type: "string", minLength: 1, maxLength: 255 } as const;

/** An object with exactly these properties, all required unless named as optional. */
export function closedObject(properties: Readonly<Record<string, unknown>>, optional: readonly string[] = []) {
  return {
    type: "object",
    properties,
    required: Object.keys(properties).filter((name) => !optional.includes(name)),
    additionalProperties: false,
  };
}

/** A map whose keys have a pattern. */
export function mapOf(keyPattern: string, value: unknown, minProperties = 0) {
  return { type: "object", minProperties, patternProperties: { [keyPattern]: value }, additionalProperties: false };
}
