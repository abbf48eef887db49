import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { badRequest, type Call, type PlacementRequest } from "./http.ts";
import type { Microversion } from "./microversion.ts";
import { isUuidLike } from "./uuids.ts";

/** Schemas of one body or query string, by the microversion from which each counts. */
export type VersionedSchemas = Readonly<Record<string, unknown>>;

const ajv = new Ajv({ allErrors: false, strict: false, formats: { uuid: { validate: isUuidLike } } });
const compiled = new Map<VersionedSchemas, readonly { readonly minor: number; readonly validate: ValidateFunction }[]>();

/** The validator that counts at this version: the latest that is not newer. */
function validatorFor(schemas: VersionedSchemas, version: Microversion): ValidateFunction {
  let list = compiled.get(schemas);
  if (list === undefined) {
    list = Object.entries(schemas)
      .map(([from, schema]) => ({ minor: Number(from.split(".")[1]), validate: ajv.compile(schema as object) }))
      .sort((a, b) => b.minor - a.minor);
    compiled.set(schemas, list);
  }
  const found = list.find((entry) => version.has(entry.minor));
  if (found === undefined) throw new Error(`no schema counts at ${version}: the route's own version is wrong`);
  return found.validate;
}

/** What is wrong, where, and what is allowed there. */
function describe(error: ErrorObject | undefined, value: unknown): string {
  if (error === undefined) return "the value is not allowed";
  const where = error.instancePath === "" ? "the whole" : error.instancePath.slice(1).replaceAll("/", ".");
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case "additionalProperties":
      return `${where}: Additional properties are not allowed ('${params["additionalProperty"]}' was unexpected)`;
    case "required":
      return `${where}: '${params["missingProperty"]}' is a required property`;
    case "minProperties":
      return `${where}: {} does not have enough properties`;
    case "minItems":
      return `${where}: [] is too short`;
    case "pattern":
      return `${where}: ${JSON.stringify(valueAt(value, error.instancePath))} does not match '${params["pattern"]}'`;
    case "format":
      return `${where}: ${JSON.stringify(valueAt(value, error.instancePath))} is not a '${params["format"]}'`;
    case "type":
      return `${where}: ${JSON.stringify(valueAt(value, error.instancePath))} is not of type ${[params["type"]].flat().map((type) => `'${type}'`).join(", ")}`;
    case "enum":
      return `${where}: ${JSON.stringify(valueAt(value, error.instancePath))} is not one of ${JSON.stringify(params["allowedValues"])}`;
    case "uniqueItems":
      return `${where}: ${JSON.stringify(valueAt(value, error.instancePath))} has non-unique elements`;
    default:
      return `${where}: ${JSON.stringify(valueAt(value, error.instancePath))} ${error.message ?? "is not allowed"}`;
  }
}

function valueAt(value: unknown, path: string): unknown {
  let found = value;
  for (const part of path.split("/").slice(1)) {
    found = (found as Record<string, unknown> | undefined)?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  const text = JSON.stringify(found) ?? "";
  return text.length > 200 ? `${text.slice(0, 200)}…` : found;
}

/** The parsed body, or 400 with the place of the fault. The type is what the schema says; the caller names it. */
export function readBody<Body>(call: Pick<Call, "json" | "version">, schemas: VersionedSchemas): Body {
  const validate = validatorFor(schemas, call.version);
  if (!validate(call.json)) throw badRequest(`JSON does not validate: ${describe(validate.errors?.[0], call.json)}`);
  return call.json as Body;
}

/** Parses the body's bytes as JSON, or throws 400. */
export function parseJson(request: PlacementRequest): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(request.body));
  } catch (error) {
    throw badRequest(`Malformed JSON: ${error instanceof Error ? error.message : "not readable"}`);
  }
}

/** Refuses query keys or values that the schema does not allow. Of a repeated key the last value is looked at. */
export function checkQuery(call: Pick<Call, "query" | "version">, schemas: VersionedSchemas): void {
  const validate = validatorFor(schemas, call.version);
  const flat = Object.fromEntries(call.query);
  if (!validate(flat)) throw badRequest(`Invalid query string parameters: ${describe(validate.errors?.[0], flat)}`);
}

export function isValid(value: unknown, schemas: VersionedSchemas, version: Microversion): boolean {
  return validatorFor(schemas, version)(value) === true;
}
