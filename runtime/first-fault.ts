import { createRequire } from "node:module";
import type { TSchema } from "typebox";

const load = createRequire(import.meta.url);

/** The place and the kind of a value's first violation of its schema, or null when it is valid. */
export function firstFault(schema: TSchema, value: unknown): string | null {
  // Loaded when something is checked, which many processes never do: it is 200 files.
  const { Errors } = load("typebox/schema") as typeof import("typebox/schema");
  const [, [first]] = Errors(schema, value);
  if (first === undefined) return null;
  return `${first.instancePath || "/"} ${whyOf(first)}`;
}

type Fault = ReturnType<typeof import("typebox/schema").Errors>[1][number];

function whyOf(error: Fault): string {
  if (error.keyword === "enum")
    return `must be one of ${error.params.allowedValues.map((one) => JSON.stringify(one)).join(", ")}`;
  return error.message === "schema is false" ? "is not known" : error.message;
}
