import type { FastifySchemaValidationError } from "fastify";
import { badRequest, type Fault, invalidField, invalidQuery, malformedAction, unknownAction } from "./fault.ts";
import { UUID_PATTERN } from "./schema.ts";

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
  const why = whyOf(errors, found);
  return part === "querystring" ? invalidQuery(path[0] ?? "", found, why) : invalidField(path.join("."), found, why);
}

/** A body whose only field names an action of the route: Nova finds the action before it looks at the rest. */
function explainAction(body: unknown): Fault {
  const [name, ...others] = typeof body === "object" && body !== null && !Array.isArray(body) ? Object.keys(body) : [];
  return name === undefined || others.length > 0 ? malformedAction() : unknownAction(name);
}

/** Returns what is allowed at the place of the first error. A schema may allow several forms there, and then has an error for each of them. */
function whyOf(errors: readonly FastifySchemaValidationError[], found: unknown): string {
  const error = errors[0];
  switch (error?.keyword) {
    case "enum":
      return oneOf(Array.isArray(error.params.allowedValues) ? error.params.allowedValues : []);
    case "minLength":
      return found === "" ? "must not be empty" : (error.message ?? INVALID);
    case "pattern":
      return error.params.pattern === UUID_PATTERN ? "It is not a UUID." : (error.message ?? INVALID);
    default:
      return formsOf(errors) ?? error?.message ?? INVALID;
  }
}

const INVALID = "It is not valid.";

/** Lists the allowed words of a field that may also be of another type. Null if it is not such a field. */
function formsOf(errors: readonly FastifySchemaValidationError[]): string | null {
  const here = errors.filter(({ instancePath }) => instancePath === errors[0]?.instancePath);
  const words = here.filter(({ keyword }) => keyword === "const").map(({ params }) => params.allowedValue);
  if (words.length === 0) return null;
  const types = here.filter(({ keyword }) => keyword === "type").map(({ params }) => `of type ${String(params.type)}`);
  return [oneOf(words), ...types].join(", or ");
}

function oneOf(allowed: readonly unknown[]): string {
  return `must be one of ${allowed.map((one) => (one === "" ? '""' : String(one))).join(", ")}`;
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
