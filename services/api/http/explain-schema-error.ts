import type { FastifySchemaValidationError } from "fastify";
import { badRequest, type Fault, invalidField, invalidQuery, malformedAction, unknownAction } from "./fault.ts";

/** Turns the first schema error into a 400 that names the field, worded as in the Compute API. The part `action` is the body of a route with actions. */
export function explainSchemaError(
  errors: readonly FastifySchemaValidationError[],
  value: unknown,
  part: "body" | "action" | "querystring" | "params" | "headers",
): Fault {
  const error = errors[0];
  if (error === undefined) return badRequest("The request is not valid.");
  if (part === "action" && error.instancePath === "") return explainAction(value);
  if (error.keyword === "additionalProperties") {
    const name = String(error.params.additionalProperty);
    const shown = name.length > 100 ? `${name.slice(0, 100)}…` : name;
    return badRequest(`Additional properties are not allowed ('${shown}' was unexpected)`);
  }
  const path = pathOf(error.instancePath);
  if (error.keyword === "required") {
    const missing = `'${String(error.params.missingProperty)}' is a required property`;
    return path.length === 0 ? badRequest(missing) : invalidField(path.join("."), valueAt(value, path), missing);
  }
  if (path.length === 0) return badRequest(`The request body ${error.message ?? "is not valid"}`);
  const found = valueAt(value, path);
  const why = error.keyword === "enum" ? enumText(error.params.allowedValues) : (error.message ?? "It is not valid.");
  return part === "querystring" ? invalidQuery(path[0] ?? "", found, why) : invalidField(path.join("."), found, why);
}

/** A body whose only field names an action of the route: Nova finds the action before it looks at the rest. */
function explainAction(body: unknown): Fault {
  const [name, ...others] = typeof body === "object" && body !== null && !Array.isArray(body) ? Object.keys(body) : [];
  return name === undefined || others.length > 0 ? malformedAction() : unknownAction(name);
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
