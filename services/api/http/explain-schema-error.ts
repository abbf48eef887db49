import type { FastifySchemaValidationError } from "fastify";
import { badRequest, type Fault, invalidField, invalidQuery } from "./fault.ts";

/**
 * Fields of the Compute API that Berth does not support, by their name, with the error for a request that sends one, or sends one with a
 * value that asks for something.
 */
export type UnsupportedFields = Readonly<Record<string, string>>;

/** Turns the first schema error into a 400 that names the field, worded as in the Compute API. */
export function explainSchemaError(
  errors: readonly FastifySchemaValidationError[],
  value: unknown,
  options: { readonly part: "body" | "querystring" | "params" | "headers"; readonly unsupported: UnsupportedFields },
): Fault {
  const error = errors[0];
  if (error === undefined) return badRequest("The request is not valid.");
  if (error.keyword === "additionalProperties") {
    const name = String(error.params.additionalProperty);
    const why = Object.hasOwn(options.unsupported, name) ? options.unsupported[name] : undefined;
    const shown = name.length > 100 ? `${name.slice(0, 100)}…` : name;
    return badRequest(why ?? `Additional properties are not allowed ('${shown}' was unexpected)`);
  }
  const path = pathOf(error.instancePath);
  if (error.keyword === "required") {
    const missing = `'${String(error.params.missingProperty)}' is a required property`;
    return path.length === 0 ? badRequest(missing) : invalidField(path.join("."), valueAt(value, path), missing);
  }
  const field = path.at(-1) ?? "";
  if (asksForMoreThanNothing(error) && Object.hasOwn(options.unsupported, field))
    return badRequest(options.unsupported[field] ?? "");
  if (path.length === 0) return badRequest(`The request body ${error.message ?? "is not valid"}`);
  const found = valueAt(value, path);
  const why = error.keyword === "enum" ? enumText(error.params.allowedValues) : (error.message ?? "It is not valid.");
  return options.part === "querystring"
    ? invalidQuery(path[0] ?? "", found, why)
    : invalidField(path.join("."), found, why);
}

/** Whether the schema accepts the field only with one of a few values, or only as an empty list. */
function asksForMoreThanNothing({ keyword, params }: FastifySchemaValidationError): boolean {
  return keyword === "enum" || (keyword === "maxItems" && params.limit === 0);
}

function enumText(allowed: unknown): string {
  return Array.isArray(allowed)
    ? `must be one of ${allowed.map((one) => (one === "" ? '""' : String(one))).join(", ")}`
    : "must be one of the allowed values";
}

/** Returns the parts of a JSON pointer. */
function pathOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const part of path) {
    if (current === null || typeof current !== "object") return undefined;
    current = (current as Readonly<Record<string, unknown>>)[part];
  }
  return current;
}
