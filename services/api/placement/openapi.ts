import { MAX_MINOR, MIN_MINOR } from "./microversion.ts";
import { ANSWERS } from "./openapi/answers.ts";
import { OPENAPI_OPERATIONS, type OpenapiOperation } from "./openapi/operations.ts";
import { queryParameters } from "./openapi/query-parameters.ts";
import { PLACEMENT_ROUTES, type PlacementRoute } from "./routes.ts";
import type { VersionedSchemas } from "./validate.ts";

/** A document of OpenAPI 3.1: https://spec.openapis.org/oas/v3.1.1.html */
export type OpenApiDocument = Readonly<Record<string, unknown>>;

const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });

/**
 * The Placement API as OpenAPI, from the table of routes and the schemas that requests are checked with. `mount` becomes the server's path
 * in the document.
 */
export function openApiDocument(mount: string): OpenApiDocument {
  const paths: Record<string, Record<string, unknown>> = {};
  const bodies: Record<string, unknown> = {};
  for (const [path, verbs] of Object.entries(PLACEMENT_ROUTES)) {
    // The root has two paths, with and without its slash. The document names it once.
    if (path === "") continue;
    const item: Record<string, unknown> = {};
    for (const [verb, route] of Object.entries(verbs)) {
      const operation = operationOf(verb, path);
      Object.assign(bodies, bodySchemas(operation));
      item[verb.toLowerCase()] = describeOperation(route, operation);
    }
    const parameters = pathParameters(path);
    paths[path] = parameters.length === 0 ? item : { parameters, ...item };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Placement",
      version: `1.${MAX_MINOR}`,
      summary: "OpenStack's Placement API, as Berth serves it.",
      description: `Versions 1.${MIN_MINOR} to 1.${MAX_MINOR}; what differs between them is said where it does.`,
    },
    servers: [{ url: mount === "" ? "/" : mount }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "apiKey", in: "header", name: "X-Auth-Token" } },
      parameters: { Microversion: MICROVERSION },
      responses: { Refusal: { description: "Refused; the body says why", ...json(ref("schemas", "Errors")) } },
      schemas: { ...ANSWERS, ...bodies },
    },
  };
}

const MICROVERSION = {
  name: "OpenStack-API-Version",
  in: "header",
  required: false,
  description: `\`placement 1.N\` or \`placement latest\`; 1.${MIN_MINOR} without it.`,
  schema: { type: "string", pattern: "placement (\\d+\\.\\d+|latest)" },
};

function operationOf(verb: string, path: string): OpenapiOperation {
  const operation = OPENAPI_OPERATIONS[`${verb} ${path}`];
  if (operation === undefined) throw new Error(`the document lacks ${verb} ${path}`);
  return operation;
}

function pathParameters(path: string): readonly unknown[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: name.endsWith("uuid") ? { type: "string", format: "uuid" } : { type: "string" },
  }));
}

function describeOperation(route: PlacementRoute, operation: OpenapiOperation): unknown {
  const refusals = [400, ...(route.rule === null ? [] : [401, 403]), 404, 406, ...(operation.refusals ?? [])];
  return {
    operationId: operation.id,
    summary: operation.summary,
    "x-since": `1.${route.since}`,
    ...(route.rule === null ? { security: [] } : { "x-policy-rule": route.rule }),
    parameters: [
      ref("parameters", "Microversion"),
      ...(operation.query === undefined ? [] : queryParameters(operation.query)),
    ],
    ...(operation.body === undefined ? {} : { requestBody: requestBody(operation, operation.body) }),
    responses: {
      ...Object.fromEntries(
        Object.entries(operation.good).map(([status, name]) => [
          status,
          name === null ? { description: "Done" } : { description: "Done", ...json(ref("schemas", name)) },
        ]),
      ),
      ...Object.fromEntries(refusals.map((status) => [status, ref("responses", "Refusal")])),
    },
  };
}

const json = (schema: unknown) => ({ content: { "application/json": { schema } } });

/** Newest first, because a reader who does not ask for an old version should see the newest. */
const newestFirst = (schemas: VersionedSchemas): readonly string[] => Object.keys(schemas).reverse();

const bodyName = (operation: OpenapiOperation, since: string): string =>
  `${operation.id[0]!.toUpperCase()}${operation.id.slice(1)}-${since}`;

function requestBody(operation: OpenapiOperation, body: VersionedSchemas): unknown {
  const choices = newestFirst(body).map((since) => ref("schemas", bodyName(operation, since)));
  return {
    required: operation.bodyUntil === undefined,
    ...json(choices.length === 1 ? choices[0] : { anyOf: choices }),
  };
}

/** Returns the body's schemas by their names in the document. */
function bodySchemas(operation: OpenapiOperation): Readonly<Record<string, unknown>> {
  const { body = {}, bodyUntil } = operation;
  const until = bodyUntil === undefined ? "" : ` until 1.${bodyUntil}`;
  return Object.fromEntries(
    Object.entries(body).map(([since, schema]) => [
      bodyName(operation, since),
      { title: `${operation.id} from ${since} on${until}`, ...(schema as object) },
    ]),
  );
}
