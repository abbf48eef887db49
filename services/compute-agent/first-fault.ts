import type { TSchema } from "typebox";
import { Value } from "typebox/value";

/** The place and the kind of a value's first violation of its schema, or null when it is valid. */
export function firstFault(schema: TSchema, value: unknown): string | null {
  const [first] = Value.Errors(schema, value);
  if (first === undefined) return null;
  const why = first.message === "schema is false" ? "is not known" : first.message;
  return `${first.instancePath || "/"} ${why}`;
}
