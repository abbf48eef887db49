import type { OpenApiDocument } from "../placement/openapi.ts";
import { policyName } from "../policy/compute-rules.ts";
import { DocumentSchemas } from "./document-schemas.ts";
import type { KnownRoute } from "./known-paths.ts";
import { MINOR_MAX, MINOR_MIN } from "./microversion.ts";
import type { QueryParameters } from "./query-reader.ts";
import { type ActionFacts, rangeOf } from "./route-facts.ts";

/** The parts of an operation's description that its route does not have. */
export interface DescribedOperation {
  readonly id: string;
  readonly summary: string;
  /** The statuses of answers to calls that succeed. */
  readonly good: readonly number[];
  /** Further statuses of refusals, beside those that follow from the route (`refusalsOf`). */
  readonly refusals?: readonly number[];
}

/** Returns the description of an operation, for tables of them. */
export function operation(
  id: string,
  summary: string,
  good: readonly number[],
  refusals: readonly number[] = [],
): DescribedOperation {
  return { id, summary, good, refusals };
}

/** An API that an OpenAPI document describes. */
export interface DescribedApi {
  readonly prefix: string;
  readonly info: Readonly<Record<"title" | "version" | "summary" | "description", string>>;
  /** By method and path below the prefix. */
  readonly operations: Readonly<Record<string, DescribedOperation>>;
  readonly hasMicroversions: boolean;
}

/**
 * Describes an API in OpenAPI 3.1: the registered routes below its prefix with their facts, and the schemas that requests are checked
 * with. Routes that Nova has removed are left out. Throws for a route that the table of operations lacks.
 */
export function describeRoutes(routes: readonly KnownRoute[], api: DescribedApi): OpenApiDocument {
  const { prefix, info, operations } = api;
  const schemas = new DocumentSchemas();
  const paths: Record<string, Record<string, unknown>> = {};
  const served = routes
    .filter(({ url, method, facts }) => isBelow(prefix, url) && method !== "HEAD" && facts.removed !== true)
    .map((route) => ({ route, path: pathOf(route.url, prefix) }));
  // A schema is named after the first operation that uses it. In this order, the schema of a resource is named after the operation that shows
  // it.
  for (const { route, path } of served.toSorted((a, b) => orderOf(a.route) - orderOf(b.route))) {
    const described = operations[`${route.method} ${path}`];
    if (described === undefined) throw new Error(`the table of operations lacks ${route.method} ${path}`);
    paths[path] = {
      ...(paths[path] ?? pathItem(path, route)),
      [route.method.toLowerCase()]: describeRoute(route, described, { schemas, ...api }),
    };
  }
  return {
    openapi: "3.1.1",
    info,
    servers: [{ url: prefix }],
    security: [{ token: [] }],
    paths: Object.fromEntries(Object.entries(paths).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    components: {
      securitySchemes: { token: { type: "apiKey", in: "header", name: "X-Auth-Token" } },
      ...(api.hasMicroversions && { parameters: { Microversion: MICROVERSION } }),
      responses: { Refusal: { description: "Refused; the body says why", ...jsonContent(FAULT) } },
      schemas: schemas.all(),
    },
  };
}

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
function describeFacts(facts: ActionFacts, hasMicroversions: boolean): Readonly<Record<string, string>> {
  const { since, until } = rangeOf(facts);
  return {
    ...(hasMicroversions && { "x-since": `2.${since}` }),
    ...(until < MINOR_MAX && { "x-until": `2.${until}` }),
    ...(typeof facts.rule === "string" && { "x-policy-rule": policyName(facts.rule) }),
  };
}

function describeQuery(query: QueryParameters): readonly object[] {
  return Object.entries(query).map(([name, since]) => ({
    ...{ name, in: "query", required: false, description: `From 2.${since} on.`, schema: { type: "string" } },
  }));
}

type Context = Pick<DescribedApi, "hasMicroversions"> & { readonly schemas: DocumentSchemas };

function describeRoute(
  route: KnownRoute,
  described: DescribedOperation,
  { schemas, hasMicroversions }: Context,
): unknown {
  const { id, summary, good } = described;
  const { facts, schema } = route;
  const answers = (schema.response ?? {}) as Readonly<Record<string, unknown>>;
  const actions = [...(facts.actions ?? [])].map(
    ([name, one]) => [name, describeFacts(one, hasMicroversions)] as const,
  );
  const body = schemas.ofBody(id, route);
  return {
    operationId: id,
    summary,
    ...describeFacts(facts, hasMicroversions),
    ...(actions.length > 0 && { "x-actions": Object.fromEntries(actions) }),
    ...(facts.public === true && { security: [] }),
    parameters: [
      ...(hasMicroversions ? [{ $ref: "#/components/parameters/Microversion" }] : []),
      ...describeQuery(facts.query ?? {}),
    ],
    ...(body !== null && { requestBody: { required: true, ...jsonContent(body) } }),
    responses: {
      ...Object.fromEntries(
        good.map((status) => {
          const answer = schemas.ofAnswer(id, answers[status] ?? answers["2xx"]);
          return [status, { description: "Done", ...(answer !== null && jsonContent(answer)) }];
        }),
      ),
      ...Object.fromEntries(
        refusalsOf(route, described, hasMicroversions).map((status) => [
          status,
          { $ref: "#/components/responses/Refusal" },
        ]),
      ),
    },
  };
}

/** Returns the statuses that follow from the route, with those that the operation adds. */
function refusalsOf(
  { url, facts, schema }: KnownRoute,
  { refusals = [] }: DescribedOperation,
  hasMicroversions: boolean,
): readonly number[] {
  const { since, until } = rangeOf(facts);
  const mayBeMissing = url.includes(":") || since > MINOR_MIN || until < MINOR_MAX;
  const own = [
    ...[400, 503],
    ...(hasMicroversions ? [406] : []),
    // A token may be invalid (401), or give no role that may read or change anything (403).
    ...(facts.public === true ? [] : [401, 403]),
    ...(mayBeMissing ? [404] : []),
    ...(schema.body === undefined ? [] : [413, 415]),
  ];
  return [...new Set([...own, ...refusals])].toSorted((a, b) => a - b);
}
