import type { KnownRoute } from "../../http/known-paths.ts";
import { MINOR_MAX, MINOR_MIN } from "../../http/microversion.ts";
import type { QueryParameters } from "../../http/query-reader.ts";
import { type ActionFacts, rangeOf } from "../../http/route-facts.ts";
import type { OpenApiDocument } from "../../placement/openapi.ts";
import { COMPUTE_OPERATIONS, type ComputeOperation } from "./compute-operations.ts";
import { DocumentSchemas } from "./document-schemas.ts";

/**
 * Describes the Compute API in OpenAPI 3.1: the registered routes below `prefix` with their facts, and the schemas that requests are checked
 * with. Routes that Nova has removed are left out. Throws for a route that `COMPUTE_OPERATIONS` lacks.
 */
export function computeDocument(routes: readonly KnownRoute[], prefix: string): OpenApiDocument {
  const schemas = new DocumentSchemas();
  const paths: Record<string, Record<string, unknown>> = {};
  const served = routes
    .filter(({ url, method, facts }) => isBelow(prefix, url) && method !== "HEAD" && facts.removed !== true)
    .map((route) => ({ route, path: pathOf(route.url, prefix) }));
  // A schema is named after the first operation that uses it. In this order, the schema of a resource is named after the operation that shows
  // it.
  for (const { route, path } of served.toSorted((a, b) => orderOf(a.route) - orderOf(b.route))) {
    const name = `${route.method} ${path}`;
    const operation = COMPUTE_OPERATIONS[name];
    if (operation === undefined) throw new Error(`compute-operations.ts lacks ${name}`);
    paths[path] = {
      ...(paths[path] ?? pathItem(path, route)),
      [route.method.toLowerCase()]: describeRoute(route, operation, schemas),
    };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Compute",
      version: `2.${MINOR_MAX}`,
      summary: "OpenStack's Compute API, as Berth serves it.",
      description: DESCRIPTION,
    },
    servers: [{ url: prefix }],
    security: [{ token: [] }],
    paths: Object.fromEntries(Object.entries(paths).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    components: {
      securitySchemes: { token: { type: "apiKey", in: "header", name: "X-Auth-Token" } },
      parameters: { Microversion: MICROVERSION },
      responses: { Refusal: { description: "Refused; the body says why", ...jsonContent(FAULT) } },
      schemas: schemas.all(),
    },
  };
}

const DESCRIPTION = `Microversions 2.${MINOR_MIN} to 2.${MINOR_MAX}. An operation is there from \`x-since\` to \`x-until\`, or in all later ones, and is \
reserved for admins where it has an \`x-policy-rule\`; outside of its microversions it answers 404. Bodies have the schemas that they are checked with. \
Some fields depend on the microversion as well. From 2.75 on, \
operations that have query parameters refuse all others.`;

const MICROVERSION = {
  name: "OpenStack-API-Version",
  in: "header",
  required: false,
  description: `\`compute 2.N\` or \`compute latest\`; 2.${MINOR_MIN} without it.`,
  schema: { type: "string" },
};

const FAULT = {
  type: "object",
  description: "One field, named for the kind of the error.",
  minProperties: 1,
  maxProperties: 1,
  additionalProperties: {
    type: "object",
    properties: { code: { type: "integer" }, message: { type: "string" } },
    required: ["code", "message"],
  },
};

const jsonContent = (schema: unknown) => ({ content: { "application/json": { schema } } });

const isBelow = (prefix: string, url: string): boolean => url === prefix || url.startsWith(`${prefix}/`);

const orderOf = ({ method }: KnownRoute): number => (method === "GET" ? 0 : 1);

function pathOf(url: string, prefix: string): string {
  const path = url.slice(prefix.length).replaceAll(/:(\w+)/g, "{$1}");
  return path === "" ? "/" : path;
}

/** Starts the description of a path with its parameters, which have the same schemas in all of its routes. */
function pathItem(path: string, { schema }: KnownRoute): Record<string, unknown> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  if (names.length === 0) return {};
  const { properties } = schema.params as { readonly properties: Readonly<Record<string, unknown>> };
  return { parameters: names.map((name) => ({ name, in: "path", required: true, schema: properties[name] })) };
}

/** The facts of a route or an action under the names that they have in the document. */
function describeFacts(facts: ActionFacts): Readonly<Record<string, string>> {
  const { since, until } = rangeOf(facts);
  return {
    "x-since": `2.${since}`,
    ...(until < MINOR_MAX && { "x-until": `2.${until}` }),
    ...(facts.rule !== undefined && { "x-policy-rule": `os_compute_api:${facts.rule}` }),
  };
}

function describeQuery(query: QueryParameters): readonly object[] {
  return Object.entries(query).map(([name, since]) => ({
    ...{ name, in: "query", required: false, description: `From 2.${since} on.`, schema: { type: "string" } },
  }));
}

function describeRoute(route: KnownRoute, operation: ComputeOperation, schemas: DocumentSchemas): unknown {
  const { facts, schema } = route;
  const answers = (schema.response ?? {}) as Readonly<Record<string, unknown>>;
  const actions = [...(facts.actions ?? [])].map(([name, one]) => [name, describeFacts(one)] as const);
  const body = schemas.ofBody(operation.id, route);
  return {
    operationId: operation.id,
    summary: operation.summary,
    ...describeFacts(facts),
    ...(actions.length > 0 && { "x-actions": Object.fromEntries(actions) }),
    ...(facts.public === true && { security: [] }),
    parameters: [{ $ref: "#/components/parameters/Microversion" }, ...describeQuery(facts.query ?? {})],
    ...(body !== null && { requestBody: { required: true, ...jsonContent(body) } }),
    responses: {
      ...Object.fromEntries(
        operation.good.map((status) => {
          const answer = schemas.ofAnswer(operation.id, answers[status] ?? answers["2xx"]);
          return [status, { description: "Done", ...(answer !== null && jsonContent(answer)) }];
        }),
      ),
      ...Object.fromEntries(
        refusalsOf(route, operation).map((status) => [status, { $ref: "#/components/responses/Refusal" }]),
      ),
    },
  };
}

/** Returns the statuses that follow from the route, with those that the operation adds. */
function refusalsOf({ url, facts, schema }: KnownRoute, { refusals = [] }: ComputeOperation): readonly number[] {
  const { since, until } = rangeOf(facts);
  const mayBeMissing = url.includes(":") || since > MINOR_MIN || until < MINOR_MAX;
  const own = [
    ...[400, 406, 503],
    // A token may be invalid (401), or give no role that may read or change anything (403).
    ...(facts.public === true ? [] : [401, 403]),
    ...(mayBeMissing ? [404] : []),
    ...(schema.body === undefined ? [] : [413, 415]),
  ];
  return [...new Set([...own, ...refusals])].toSorted((a, b) => a - b);
}
