import { dirname } from "node:path/posix";
import type { FastifySchemaValidationError } from "fastify";
import { badRequest, type Fault, invalidField, invalidQuery, malformedAction, unknownAction } from "./fault.ts";
import { UUID_PATTERN } from "./schema.ts";

/** Turns the most telling schema error into a 400 that names the field, worded as in the Compute API. The part `action` is the body of a route with actions. */
export function explainSchemaError(
  errors: readonly FastifySchemaValidationError[],
  value: unknown,
  part: "body" | "action" | "querystring" | "params" | "headers",
): Fault {
  if (part === "action" && errors[0]?.instancePath === "") return explainAction(value);
  const telling = tellingErrors(errors);
  const error = telling[0];
  if (error === undefined) return badRequest("The request is not valid.");
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
  const why = whyOf(telling, found);
  return part === "querystring" ? invalidQuery(path[0] ?? "", found, why) : invalidField(path.join("."), found, why);
}

/** A body whose only field names an action of the route: Nova finds the action before it looks at the rest. */
function explainAction(body: unknown): Fault {
  const [name, ...others] = typeof body === "object" && body !== null && !Array.isArray(body) ? Object.keys(body) : [];
  return name === undefined || others.length > 0 ? malformedAction() : unknownAction(name);
}

/** Keywords of errors that only say that a value has another form. */
const OTHER_FORM: ReadonlySet<string> = new Set(["type", "const", "anyOf", "oneOf"]);

/**
 * Returns the errors of the form that the value has, where several are allowed: they are deeper in it than those of the other forms, or say
 * more than that it has another one. If it has none of them, the errors are those of all forms.
 */
function tellingErrors(errors: readonly FastifySchemaValidationError[]): readonly FastifySchemaValidationError[] {
  const depths = errors.map(({ instancePath }) => pathOf(instancePath).length);
  const deepest = errors.filter((_, at) => depths[at] === Math.max(...depths));
  const ofItsForm = deepest.filter(({ keyword }) => !OTHER_FORM.has(keyword));
  return ofItsForm.length > 0 ? ofItsForm : deepest;
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
  const ofWords = here.filter(({ keyword }) => keyword === "const");
  if (ofWords.length === 0) return null;
  // A word has a type as well, which says no more than the word.
  const wordForms = new Set(ofWords.map(({ schemaPath }) => dirname(schemaPath)));
  const ofTypes = here.filter(({ keyword, schemaPath }) => keyword === "type" && !wordForms.has(dirname(schemaPath)));
  const types = new Set(ofTypes.map(({ params }) => `of type ${String(params.type)}`));
  return [oneOf(ofWords.map(({ params }) => params.allowedValue)), ...types].join(", or ");
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
