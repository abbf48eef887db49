import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import type { PlacementCall, PlacementRequest } from "./http.ts";
import type { Microversion } from "./microversion.ts";
import { placementBadRequest } from "./placement-error.ts";
import { isUuidLike } from "./uuids.ts";

/** Schemas of one body or query string, by the microversion from which each counts. */
export type VersionedSchemas = Readonly<Record<string, unknown>>;

const ajv = new Ajv({
  allErrors: false,
  strict: false,
  // JSON's 1e400 is parsed as infinity, which is not an integer.
  strictNumbers: true,
  verbose: true,
  formats: { uuid: { validate: isUuidLike } },
});
const compiled = new Map<
  VersionedSchemas,
  readonly { readonly minor: number; readonly validate: ValidateFunction }[]
>();

/** Returns the validator for this version: that of the latest schema that is not newer. */
function validatorFor(schemas: VersionedSchemas, version: Microversion): ValidateFunction {
  let list = compiled.get(schemas);
  if (list === undefined) {
    list = Object.entries(schemas)
      .map(([from, schema]) => ({ minor: Number(from.split(".")[1]), validate: ajv.compile(schema as object) }))
      .sort((a, b) => b.minor - a.minor);
    compiled.set(schemas, list);
  }
  const found = list.find((entry) => version.has(entry.minor));
  if (found === undefined) throw new Error(`no schema is valid at ${version}: the route's own version is wrong`);
  return found.validate;
}

/**
 * Describes a validation error in the words of upstream's validator, which clients and their tests look for: the value, the broken rule,
 * and its place. Long values are shortened.
 */
function describe(error: ErrorObject | undefined, root: unknown): string {
  if (error === undefined) return "the value is not allowed";
  const brackets = (pointer: string): string =>
    pointer
      .split("/")
      .slice(1)
      .map((part) => `['${unescapePointer(part)}']`)
      .join("");
  const schemaPath = error.schemaPath.split("/").slice(0, -1).join("/");
  const value = show(valueAt(root, error.instancePath));
  return `${sentence(error, value)}\n\nFailed validating '${error.keyword}' in schema${brackets(schemaPath)}\n\nOn instance${brackets(error.instancePath)}:\n    ${value}`;
}

function sentence(error: ErrorObject, value: string): string {
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case "additionalProperties": {
      const patterns = Object.keys((error.parentSchema?.["patternProperties"] as object | undefined) ?? {});
      const name = show(params["additionalProperty"]);
      if (patterns.length > 0)
        return `${name} does not match any of the regexes: ${patterns.map((pattern) => show(pattern)).join(", ")}`;
      return `Additional properties are not allowed (${name} was unexpected)`;
    }
    case "required":
      return `${show(params["missingProperty"])} is a required property`;
    case "minProperties":
      return `${value} does not have enough properties`;
    case "minItems":
    case "minLength":
      return `${value} is too short`;
    case "maxLength":
      return `${value} is too long`;
    case "minimum":
      return `${value} is less than the minimum of ${params["limit"]}`;
    case "maximum":
      return `${value} is greater than the maximum of ${params["limit"]}`;
    case "pattern":
      return `${value} does not match ${show(params["pattern"])}`;
    case "format":
      return `${value} is not a ${show(params["format"])}`;
    case "type":
      return `${value} is not of type ${[params["type"]]
        .flat()
        .map((type) => show(type))
        .join(", ")}`;
    case "enum":
      return `${value} is not one of ${show(params["allowedValues"])}`;
    case "uniqueItems":
      return `${value} has non-unique elements`;
    default:
      return `${value} ${error.message ?? "is not allowed"}`;
  }
}

const SHOWN_MAX = 300;
const SHOWN_LEVELS = 4;
const SHOWN_MEMBERS = 20;

/** Shows a value, limited in depth and length, so that a megabyte of brackets is not sent back. */
function show(value: unknown, levels = SHOWN_LEVELS): string {
  const text = showWhole(value, levels);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}

function showWhole(value: unknown, levels: number): string {
  if (typeof value === "string") return `'${value}'`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "nothing";
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  if (levels === 0) return `${open}…${close}`;
  const members = Array.isArray(value)
    ? value.slice(0, SHOWN_MEMBERS).map((one) => show(one, levels - 1))
    : Object.entries(value)
        .slice(0, SHOWN_MEMBERS)
        .map(([key, one]) => `${JSON.stringify(key)}:${show(one, levels - 1)}`);
  return Array.isArray(value) ? `[${members.join(", ")}]` : `{${members.join(",")}}`;
}

/** A part of a JSON pointer as the key it stands for. */
const unescapePointer = (part: string): string => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");

function valueAt(root: unknown, path: string): unknown {
  let found = root;
  for (const part of path.split("/").slice(1)) {
    found = (found as Record<string, unknown> | undefined)?.[unescapePointer(part)];
  }
  return found;
}

/** The parsed body, or 400 with the place of the fault. The type is what the schema says; the caller names it. */
export function readBody<Body>(call: Pick<PlacementCall, "json" | "version">, schemas: VersionedSchemas): Body {
  const validate = validatorFor(schemas, call.version);
  if (!validate(call.json))
    throw placementBadRequest(`JSON does not validate: ${describe(validate.errors?.[0], call.json)}`);
  return call.json as Body;
}

/** Parses the body's bytes as JSON, or throws 400. */
export function parseJson(request: PlacementRequest): unknown {
  const text = decodeBody(request.body);
  try {
    return JSON.parse(text, UNREADABLE_ESCAPE.test(text) ? refuseUnreadable : undefined);
  } catch (error) {
    throw placementBadRequest(`Malformed JSON: ${error instanceof Error ? error.message : "not readable"}`);
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function decodeBody(body: Uint8Array): string {
  try {
    return utf8.decode(body);
  } catch {
    throw placementBadRequest("Malformed JSON: the body is not UTF-8");
  }
}

/** Escapes of the character NUL and of halves of surrogate pairs. */
const UNREADABLE_ESCAPE = /\\u(?:0000|d[89a-f])/i;

/** Refuses text that databases do not store: NUL and unpaired surrogates. */
function refuseUnreadable(key: string, value: unknown): unknown {
  for (const text of typeof value === "string" ? [key, value] : [key]) {
    if (text.includes("\0")) throw new Error("a text must not contain the character NUL");
    if (!text.isWellFormed()) throw new Error("a text must not contain half of a surrogate pair");
  }
  return value;
}

/** Refuses query keys or values that the schema does not allow. If a key is repeated, only its last value is checked. */
export function checkQuery(call: Pick<PlacementCall, "query" | "version">, schemas: VersionedSchemas): void {
  const validate = validatorFor(schemas, call.version);
  const flat = Object.fromEntries(call.query);
  if (!validate(flat))
    throw placementBadRequest(`Invalid query string parameters: ${describe(validate.errors?.[0], flat)}`);
}

export function isValid(value: unknown, schemas: VersionedSchemas, version: Microversion): boolean {
  return validatorFor(schemas, version)(value) === true;
}
