import type { TSchema, Type } from "typebox";

type Builder = Pick<
  typeof Type,
  | "Array"
  | "Boolean"
  | "Enum"
  | "Integer"
  | "Literal"
  | "Number"
  | "Object"
  | "Optional"
  | "Record"
  | "String"
  | "Tuple"
  | "Unknown"
>;
type Schema = TSchema & { readonly pattern?: string };

const OPTIONAL = "~optional";

/**
 * Makes the same schemas as TypeBox's `Type`, with the same types, as plain objects. It loads none of TypeBox's 340 files, which take a
 * fifth of the CPU time that a compute agent needs to start. Give the schemas to `firstFault`.
 */
export const PlainType = {
  Array: (items: Schema, options?: object) => ({ type: "array", items, ...options }),
  Boolean: (options?: object) => ({ type: "boolean", ...options }),
  Enum: (values: readonly unknown[], options?: object) => ({ enum: [...values], ...options }),
  Integer: (options?: object) => ({ type: "integer", ...options }),
  Literal: (value: unknown, options?: object) => ({ type: typeof value, const: value, ...options }),
  Number: (options?: object) => ({ type: "number", ...options }),
  Object(properties: Readonly<Record<string, Schema>>, options?: object) {
    const required = Object.keys(properties).filter((name) => !(OPTIONAL in (properties[name] as Schema)));
    return { type: "object", ...(required.length > 0 && { required }), properties, ...options };
  },
  // It is no part of the schema, so nobody sees it who lists the schema's fields.
  Optional: (schema: Schema) => Object.defineProperty({ ...schema }, OPTIONAL, { value: true }),
  Record: (key: Schema, value: Schema, options?: object) => ({
    type: "object",
    patternProperties: { [key.pattern ?? "^.*$"]: value },
    ...options,
  }),
  String: (options?: object) => ({ type: "string", ...options }),
  Tuple: (items: readonly Schema[], options?: object) => ({
    ...{ type: "array", additionalItems: false, items: [...items], minItems: items.length },
    ...options,
  }),
  Unknown: (options?: object) => ({ ...options }),
} as unknown as Builder;
