import { createRequire } from "node:module";
import type { TSchema } from "typebox";

const load = createRequire(import.meta.url);

/** The place and the kind of a value's first violation of its schema, or null when it is valid. */
export function firstFault(schema: TSchema, value: unknown): string | null {
  // Loaded when something is checked, which many processes never do: it is 200 files.
  const { Errors } = load("typebox/schema") as typeof import("typebox/schema");
  const [, [first]] = Errors(schema, value);
  if (first === undefined) return null;
  const why = first.message === "schema is false" ? "is not known" : first.message;
  return `${first.instancePath || "/"} ${why}`;
}
